"""What one batch does: the only module that joins the steps, in the order in which the data flows.

A batch may run again after a crash, at any point. Then the logs deliver the same records, but the brokers no longer
answer the same log offsets. So a batch is what its first committed write (`topic_offsets`) says: which records it
read, and at what time. A table that already holds the batch is read, not folded again, and later steps derive from
stored tables only.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.decode import records
from pipeline.decode import step as decode
from pipeline.errors import BrokerUnavailableError, TopicMissingError
from pipeline.fold import control_messages as fold_talk
from pipeline.fold import step as fold
from pipeline.kafka.client import unresolved
from pipeline.kafka.list_offsets.leaders import leaders_of
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.sources.log_offsets import topics_gone
from pipeline.kafka.sources.records.consumer import ReadSettings
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.lag import step as measure
from pipeline.run.batch import intake
from pipeline.run.batch.plans import make_plans, publish_plans
from pipeline.run.batch.writes import handed_over, stamped, write
from pipeline.run.driver import Batch, Driver
from pipeline.tables import maintenance, ownership

log = logging.getLogger(__name__)

_AWAY_SAID_EVERY_MS = 60_000
_BESIDE_LAGS = ("consumer_groups", "acks", "orders")
"""Latest tables that hold what records said, as `partition_lag` does."""


def begin(batch: Batch) -> None:
    """Make sure that this driver still owns the tables, and settle the batch's clock."""
    driver = batch.driver
    ownership.check(driver.store, driver.owner)
    if not driver.started:
        _look_back(driver, batch.batch_id)
    batch.is_replay = "topic_offsets" in driver.replayed
    if batch.is_replay:
        batch.stamp = driver.store.stamp("topic_offsets")
        batch.at_ms = batch.clock.at_ms
    else:
        # Time that goes back would make ages and rates negative; it stands still instead.
        batch.at_ms = max(time.time_ns() // 1_000_000, driver.at_ms + 1)
    driver.at_ms = batch.at_ms


def choose_records(batch: Batch) -> None:
    """Ask the leaders where their logs end, and choose what the batch reads; without any answer it does nothing."""
    try:
        intake.choose(batch)
    except TopicMissingError:
        raise
    except BrokerUnavailableError as error:
        batch.is_skipped = True
        _say_away(batch.driver, error)


def _say_away(driver: Driver, error: BrokerUnavailableError) -> None:
    if driver.at_ms - driver.away_said_ms >= _AWAY_SAID_EVERY_MS:
        driver.away_said_ms = driver.at_ms
        log.warning(
            "Kafka is away; the tables keep what was known",
            extra={
                "bootstrap_servers": driver.config.kafka.properties["bootstrap.servers"],
                "error": str(error),
                "next_attempt_in_s": driver.config.trigger.interval_s,
            },
        )


def _look_back(driver: Driver, batch_id: int) -> None:
    """See which tables hold this batch already."""
    names = (
        "topic_offsets",
        "consumer_groups",
        "acks",
        "orders",
        "partition_lag",
        "lag_history",
        "quarantine",
        "recommendations",
    )
    stamps = {name: stamp for name in names if (stamp := driver.store.stamp(name))}
    lags = stamps.get("partition_lag")
    # Where all is read again (`memory`), what a batch left half done has read does not count.
    is_anew = lags is not None and lags.positions == {}
    done = () if is_anew else stamps.items()
    driver.replayed = frozenset(n for n, stamp in done if stamp.is_batch(driver.query_id, batch_id))
    driver.at_ms = max((stamp.at_ms for stamp in stamps.values()), default=0)
    plans = stamps.get("recommendations")
    driver.plan_at_ms = driver.decided_at_ms = plans.at_ms if plans else 0


def decode_records(batch: Batch) -> None:
    """Read, decode, keep the result for the steps to come, and say what was in it."""
    driver = batch.driver
    rows = decode.log_offset_rows(batch.rows)
    settings = ReadSettings(
        properties=unresolved(driver.config), timeout_s=driver.config.source.request_timeout_s
    )
    read = records.read(rows.sparkSession, batch.intake.spans, settings, driver.filters)
    batch.decoded = (rows if read is None else rows.unionByName(read)).persist()
    batch.summary = decode.summarise(batch.decoded)


def settle(batch: Batch) -> None:
    """Say how far everything is by now, and whom that leaves behind: the stamp that all writes of the batch carry."""
    intake.settle(batch)


def store_topic_offsets(batch: Batch) -> None:
    """The batch's first write: what the brokers said, and when."""
    driver = batch.driver
    if "topic_offsets" in driver.replayed:
        return
    known, observed = _known_topics(driver), batch.kind("log_offset")
    left = _left_of_missing(batch, known, observed)
    measured = measure.measure_topic_offsets(
        fold.fold_topic_offsets(known, observed),
        measure.TopicSettings(
            at_ms=batch.clock.at_ms,
            batch_id=batch.batch_id,
            listing_error=batch.summary.listing_error,
            half_life_ms=driver.config.rates.half_life_s * 1000,
            remaining=left.remaining,
            unconfirmed=left.unconfirmed,
        ),
    )
    write(batch, "topic_offsets", measured)


def _left_of_missing(batch: Batch, known: DataFrame, observed: DataFrame) -> topics_gone.Found:
    """What the brokers say of topics that a complete listing did not contain whole."""
    if not batch.summary.is_listed or batch.summary.listing_error is not None:
        return topics_gone.Found()
    config = batch.driver.config
    return topics_gone.confirm_gone(
        leaders_of(unresolved(config)),
        fold.missing_topics(known, observed),
        timeout_s=config.source.request_timeout_s,
    )


def _known_topics(driver: Driver) -> DataFrame:
    """The table, less what is about another cluster or about topics that are no longer wanted."""
    stored = driver.store.read("topic_offsets")
    if driver.is_new_cluster:
        return stored.limit(0)
    if driver.started:
        return stored
    names = [row["topic"] for row in stored.select("topic").distinct().collect()]
    unwanted = [name for name in names if not driver.config.source.wants_topic(name)]
    return stored.where(~F.col("topic").isin(unwanted)) if unwanted else stored


def find_ghosts(batch: Batch) -> None:
    """Find groups whose deletion was missed: now and then, while everything is read to its end."""
    driver = batch.driver
    if batch.reread(OFFSETS_TOPIC):
        driver.ghosts.begin_anew()
    if not (batch.is_replay or batch.clock.behind or driver.once):
        batch.ghosts = driver.ghosts.found(lambda: _stored_groups(driver), now_ms=batch.at_ms)


def _stored_groups(driver: Driver) -> Mapping[str, tuple[PartitionKey, ...]]:
    """Classic groups, and those without a record, with the partitions that they have committed."""
    groups = driver.store.read("consumer_groups").select("group_id", "group_type")
    commits = driver.store.read("partition_lag").where("committed_offset is not null")
    by_group = commits.groupBy("group_id").agg(F.collect_list(F.struct("topic", "partition")).alias("keys"))
    rows = by_group.join(groups, on="group_id", how="full_outer").where(
        "group_type is null or group_type = 'classic'"
    )
    return {
        row["group_id"]: tuple((key["topic"], key["partition"]) for key in row["keys"] or ())
        for row in rows.collect()
    }


def _less_ghosts(batch: Batch, stored: DataFrame) -> DataFrame:
    return stored.where(~F.col("group_id").isin(*batch.ghosts)) if batch.ghosts else stored


def store_groups(batch: Batch) -> None:
    """Group records, when the batch has any, or when a partition was read to its end: then its stale ones go."""
    driver = batch.driver
    if "consumer_groups" in driver.replayed:
        return
    reread = batch.reread(OFFSETS_TOPIC)
    is_stale = not driver.started or reread or batch.ghosts or batch.clock.behind != driver.behind
    if not (batch.summary.group_records or (is_stale and driver.store.has_rows("consumer_groups"))):
        return
    folded = fold.fold_groups(
        _less_ghosts(batch, driver.store.read("consumer_groups")),
        batch.kind("group", "group_tombstone"),
        reread=reread,
        behind=batch.clock.behind,
    )
    write(batch, "consumer_groups", stamped(batch, folded))


def store_talk(batch: Batch) -> None:
    """What followers acknowledge and operators order, when the batch has any of it or reads all of it again."""
    driver, summary = batch.driver, batch.summary
    control = driver.config.control
    if _is_talk_due(batch, "acks", control.acks_topic, summary.acks):
        folded = fold_talk.fold_acks(
            _said_before(batch, "acks", control.acks_topic),
            batch.kind("ack"),
            driver.store.read("consumer_groups"),
            at_ms=batch.clock.at_ms,
        )
        write(batch, "acks", stamped(batch, folded))
    if _is_talk_due(batch, "orders", control.commands_topic, summary.orders):
        folded = fold_talk.fold_orders(
            _said_before(batch, "orders", control.commands_topic), batch.kind("orders")
        )
        write(batch, "orders", stamped(batch, folded))
    if summary.acks or summary.orders or not driver.started:
        driver.has_acks = driver.store.has_rows("acks")
        driver.has_orders = driver.store.has_rows("orders")


def _is_talk_due(batch: Batch, name: str, topic: str, records_read: int) -> bool:
    if name in batch.driver.replayed:
        return False
    return records_read > 0 or (bool(batch.reread(topic)) and batch.driver.store.has_rows(name))


def _said_before(batch: Batch, name: str, topic: str) -> DataFrame:
    """The table of what was said in the topic; nothing of it when the topic is read again from its start."""
    stored = batch.driver.store.read(name)
    return stored.limit(0) if batch.reread(topic) else stored


def store_quarantine(batch: Batch) -> None:
    """What could not be decoded."""
    if batch.summary.quarantined and "quarantine" not in batch.driver.replayed:
        key = ["topic", "partition", "offset"]
        # What is read again is not bad again.
        known = batch.driver.store.read("quarantine").select(*key)
        bad = batch.kind("bad").join(known, on=key, how="left_anti")
        write(batch, "quarantine", stamped(batch, bad))


def store_lag(batch: Batch) -> None:
    """The lag of every partition of every group, from what is stored by now."""
    driver = batch.driver
    if "partition_lag" in driver.replayed:
        return
    config, groups = driver.config, driver.store.read("consumer_groups")
    held = fold.assigned_partitions(groups)
    if driver.has_acks:
        held = fold_talk.held_partitions(held, handed_over(driver), groups)
    folded = fold.fold_commits(
        _less_ghosts(batch, driver.store.read("partition_lag")),
        fold.newest_commits(batch.kind("commit", "tombstone")),
        held,
        reread=batch.reread(OFFSETS_TOPIC),
        behind=batch.clock.behind,
    )
    measured = measure.measure_lag(
        folded,
        driver.store.read("topic_offsets"),
        measure.LagSettings(
            at_ms=batch.clock.at_ms,
            batch_id=batch.batch_id,
            behind=batch.clock.behind,
            half_life_ms=config.rates.half_life_s * 1000,
            allowed_lag=config.status.allowed_lag,
            history_interval_ms=config.history.interval_s * 1000,
            history_max_gap_ms=config.history.max_gap_s * 1000,
        ),
    )
    # Where reading goes on stands in this commit: by then every table that the records change has been written.
    driver.versions |= driver.store.versions(name for name in _BESIDE_LAGS if name not in driver.versions)
    batch.stamp = replace(batch.clock, versions=dict(driver.versions))
    write(batch, "partition_lag", measured)


def store_history(batch: Batch) -> None:
    """The rows of `partition_lag` whose turn it is."""
    if "lag_history" in batch.driver.replayed:
        return
    due = batch.driver.store.read("partition_lag").where("history_at = updated_at")
    if not due.isEmpty():
        write(batch, "lag_history", due.withColumn("date", F.to_date("updated_at")))


def keep_up(batch: Batch) -> None:
    """Compact, expire and clean, now and then."""
    tables = batch.driver.config.tables
    if batch.batch_id % tables.upkeep_every_batches == tables.upkeep_every_batches - 1:
        try:
            maintenance.run(
                batch.driver.store.root,
                at_ms=batch.clock.at_ms,
                keep_days=batch.driver.config.history.keep_days,
                storage_options=batch.driver.store.storage_options,
            )
        except Exception:
            # The batch is stored and published; what was not cleaned up now is next time.
            log.exception("upkeep failed", extra={"tables_root": batch.driver.store.root})


Step = Callable[[Batch], None]

STEPS: tuple[Step, ...] = (
    begin,
    choose_records,
    decode_records,
    settle,
    find_ghosts,
    store_topic_offsets,
    store_groups,
    store_talk,
    store_quarantine,
    store_lag,
    store_history,
    make_plans,
    publish_plans,
    keep_up,
)


def run(batch: Batch, steps: tuple[Step, ...] = STEPS) -> dict[str, float]:
    """Take one batch through the steps. Safe to run again with the same batch id.

    Returns:
        Seconds by step.
    """
    seconds: dict[str, float] = {}
    try:
        for step in steps:
            begun = time.monotonic()
            step(batch)
            seconds[step.__name__] = time.monotonic() - begun
            if batch.is_skipped:
                return seconds
    finally:
        if batch.decoded is not None:
            batch.decoded.unpersist()
    driver = batch.driver
    driver.started, driver.replayed, driver.is_new_cluster = True, frozenset(), False
    driver.behind = batch.clock.behind
    return seconds
