"""The driver's own figures as Prometheus text; what it does not know has no sample."""

from collections.abc import Iterator, Mapping

from pipeline.exposition import LAST_BATCH, LIVE, PROVISIONAL, READY, Family, line
from pipeline.run.health.monitor import BATCH_BUCKETS_S, BatchFigures, Monitor, SparkFigures, Totals

KAFKA_UP = Family("lagwise_kafka_up", "1 while the brokers answer")
DRIVER_TERM = Family("lagwise_driver_term", "Term of this driver")
BATCH_SECONDS = Family("lagwise_batch_seconds", "How long batches took", "histogram")
STEP_SECONDS = Family("lagwise_batch_step_seconds", "How long the steps of the newest batch took")
SOURCE_ROWS = Family("lagwise_source_rows", "Rows that the streaming source gave the newest batch")
SPARK_SECONDS = Family(
    "lagwise_spark_phase_seconds", "How long the phases of Spark took around the newest batch"
)
UNANSWERED = Family(
    "lagwise_unanswered_partitions", "Partitions whose leader did not answer the newest batch"
)
OFFSETS_LEFT = Family(
    "lagwise_offsets_topic_lag_records", "Records of the offsets topic that are not read yet"
)
RECORDS = Family("lagwise_records_total", "Records read, by kind", "counter")
QUARANTINED = Family("lagwise_quarantined_records_total", "Records that could not be decoded", "counter")
DECISIONS = Family("lagwise_decisions_total", "Decisions about groups", "counter")
PUBLISHED = Family("lagwise_published_plans_total", "Records sent to the control topic", "counter")

_QUARANTINED_KIND = "bad"


def metrics(monitor: Monitor) -> str:
    """All of them, as of now."""
    health, report = monitor.health(), monitor.report()
    with monitor.lock:
        named = {"cluster_name": monitor.cluster} if monitor.cluster else {}
        # During an outage, the newest batch is from before it: what brokers answered then says nothing about now.
        errors = (report.kafka_error, report.storage_error, report.spark_error)
        current = monitor.last if health.is_live and not any(errors) else None
        is_kafka_up = False if report.kafka_error else (True if current else None)
        text = [
            _one(LIVE, named, health.is_live),
            _one(READY, named, health.is_ready),
            _one(KAFKA_UP, named, is_kafka_up),
            _one(DRIVER_TERM, named, monitor.owner[1] if monitor.owner else None),
            *(_of_batch(monitor.last, named) if monitor.last else ()),
            *(_of_brokers(current, named) if current else ()),
            *(_of_spark(monitor.spark, named) if monitor.spark else ()),
            *_of_totals(monitor.totals, named),
        ]
    return "".join(text)


def _of_batch(last: BatchFigures, named: Mapping[str, str]) -> Iterator[str]:
    yield _one(LAST_BATCH, named, last.stamp.at_ms / 1000)
    yield _by(STEP_SECONDS, named, {(("step", name),): s for name, s in last.seconds_by_step.items()})


def _of_brokers(current: BatchFigures, named: Mapping[str, str]) -> Iterator[str]:
    yield _one(PROVISIONAL, named, len(current.stamp.behind))
    yield _one(UNANSWERED, named, current.unanswered)
    yield _one(OFFSETS_LEFT, named, current.offsets_left)


def _of_spark(spark: SparkFigures, named: Mapping[str, str]) -> Iterator[str]:
    yield _one(SOURCE_ROWS, named, spark.rows)
    yield _by(SPARK_SECONDS, named, {(("phase", name),): s for name, s in spark.seconds_by_phase.items()})


def _of_totals(totals: Totals, named: Mapping[str, str]) -> Iterator[str]:
    yield _histogram(totals, named)
    yield _by(RECORDS, named, {(("kind", kind),): n for kind, n in sorted(totals.records.items())})
    yield _one(QUARANTINED, named, totals.records[_QUARANTINED_KIND])
    decisions = sorted(totals.decisions.items())
    yield _by(DECISIONS, named, {(("decision", d), ("guard", guard)): n for (d, guard), n in decisions})
    yield _one(PUBLISHED, named, totals.published)


def _histogram(totals: Totals, named: Mapping[str, str]) -> str:
    text, below = [BATCH_SECONDS.header], 0
    for bound in (*BATCH_BUCKETS_S, float("inf")):
        below += totals.batches[bound]
        edge = "+Inf" if bound == float("inf") else f"{bound:g}"
        text.append(line(f"{BATCH_SECONDS.name}_bucket", {**named, "le": edge}, below))
    text.append(line(f"{BATCH_SECONDS.name}_sum", named, totals.batch_s))
    text.append(line(f"{BATCH_SECONDS.name}_count", named, below))
    return "".join(text)


def _one(family: Family, named: Mapping[str, str], value: float | None) -> str:
    return _by(family, named, {(): None if value is None else float(value)})


def _by(
    family: Family, named: Mapping[str, str], values: Mapping[tuple[tuple[str, str], ...], float | None]
) -> str:
    return family.text({(*named.items(), *labels): value for labels, value in values.items()})
