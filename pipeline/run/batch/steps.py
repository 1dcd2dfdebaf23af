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
from pipeline.fold import control_messages as fold_control
from pipeline.fold import step as fold
from pipeline.kafka.client import unresolved
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.sources.log_offsets import topics_gone
from pipeline.kafka.sources.log_offsets.leaders import leaders_of
from pipeline.kafka.sources.records.consumer import ReadSettings
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.lag import step as measure
from pipeline.run.batch import intake
from pipeline.run.batch.plans import make_plans, publish_plans
from pipeline.run.batch.writes import handed_over, stamped, write
from pipeline.run.driver import Batch
from pipeline.run.replay import Start, look_back
from pipeline.run.services import Services
from pipeline.tables import maintenance, ownership
from pipeline.tables.store import Store

log = logging.getLogger(__name__)

_OUTAGE_LOGGED_EVERY_MS = 60_000
_BESIDE_LAGS = ("consumer_groups", "acks", "orders")
"""Latest tables that hold what records said, as `partition_lag` does."""


def begin(batch: Batch) -> None:
    """Make sure that this driver still owns the tables, and settle the batch's clock."""
    driver, services, replay = batch.driver, batch.services, batch.driver.replay
    ownership.check(services.store, services.owner)
    if replay.is_first:
        past = look_back(services.store, query_id=replay.query_id, batch_id=batch.batch_id)
        batch.written |= past.written
        replay.at_ms = past.at_ms
        driver.memory.evaluated_at_ms = past.decided_at_ms
    batch.is_replay = "topic_offsets" in batch.written
    if batch.is_replay:
        batch.stamp = services.store.stamp("topic_offsets")
        batch.at_ms = batch.clock.at_ms
    else:
        # Time that goes back would make ages and rates negative; it stands still instead.
        batch.at_ms = max(time.time_ns() // 1_000_000, replay.at_ms + 1)
    replay.at_ms = batch.at_ms


def choose_records(batch: Batch) -> None:
    """Ask the leaders where their logs end, and choose what the batch reads; without any answer it does nothing."""
    try:
        intake.choose(batch)
    except TopicMissingError:
        raise
    except BrokerUnavailableError as error:
        batch.is_skipped = True
        _log_outage(batch, error)


def _log_outage(batch: Batch, error: BrokerUnavailableError) -> None:
    progress, config = batch.driver.progress, batch.services.config
    if batch.at_ms - progress.outage_logged_ms >= _OUTAGE_LOGGED_EVERY_MS:
        progress.outage_logged_ms = batch.at_ms
        log.warning(
            "Kafka is away; the tables keep what was known",
            extra={
                "bootstrap_servers": config.kafka.properties["bootstrap.servers"],
                "error": str(error),
                "next_attempt_in_s": config.trigger.interval_s,
            },
        )


def decode_records(batch: Batch) -> None:
    """Read, decode, keep the result for the steps to come, and say what was in it."""
    config = batch.services.config
    rows = decode.log_offset_rows(batch.rows)
    settings = ReadSettings(properties=unresolved(config), timeout_s=config.source.request_timeout_s)
    read = records.read(rows.sparkSession, batch.intake.spans, settings, batch.services.filters)
    batch.decoded = (rows if read is None else rows.unionByName(read)).persist()
    batch.summary = decode.summarise(batch.decoded)


def settle(batch: Batch) -> None:
    """Say how far everything is by now, and whom that leaves behind: the stamp that all writes of the batch carry."""
    intake.settle(batch)


def store_topic_offsets(batch: Batch) -> None:
    """The batch's first write: what the brokers said, and when."""
    if "topic_offsets" in batch.written:
        return
    known, observed = _known_topics(batch.services, batch.driver.replay.start), batch.kind("log_offset")
    left = _left_of_missing(batch, known, observed)
    measured = measure.measure_topic_offsets(
        fold.fold_topic_offsets(known, observed),
        measure.TopicSettings(
            at_ms=batch.clock.at_ms,
            batch_id=batch.batch_id,
            listing_error=batch.summary.listing_error,
            half_life_ms=batch.services.config.rates.half_life_s * 1000,
            remaining=left.remaining,
            unconfirmed=left.unconfirmed,
        ),
    )
    write(batch, "topic_offsets", measured)


def _left_of_missing(batch: Batch, known: DataFrame, observed: DataFrame) -> topics_gone.Found:
    """What the brokers say of topics that a complete listing did not contain whole."""
    if not batch.summary.is_listed or batch.summary.listing_error is not None:
        return topics_gone.Found()
    config = batch.services.config
    return topics_gone.confirm_gone(
        leaders_of(unresolved(config)),
        fold.missing_topics(known, observed),
        timeout_s=config.source.request_timeout_s,
    )


def _known_topics(services: Services, start: Start | None) -> DataFrame:
    """The table, less what is about another cluster or about topics that are no longer wanted."""
    stored = services.store.read("topic_offsets")
    if start is None:
        return stored
    if start.is_new_cluster:
        return stored.limit(0)
    names = [row["topic"] for row in stored.select("topic").distinct().collect()]
    unwanted = [name for name in names if not services.config.source.wants_topic(name)]
    return stored.where(~F.col("topic").isin(unwanted)) if unwanted else stored


def find_ghosts(batch: Batch) -> None:
    """Find groups whose deletion was missed: now and then, while everything is read to its end."""
    services = batch.services
    if batch.reread(OFFSETS_TOPIC):
        services.ghosts.begin_anew()
    if not (batch.is_replay or batch.clock.behind or services.is_once):
        batch.ghosts = services.ghosts.found(lambda: _stored_groups(services.store), now_ms=batch.at_ms)


def _stored_groups(store: Store) -> Mapping[str, tuple[PartitionKey, ...]]:
    """Classic groups, and those without a record, with the partitions that they have committed."""
    groups = store.read("consumer_groups").select("group_id", "group_type")
    commits = store.read("partition_lag").where("committed_offset is not null")
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
    driver, store = batch.driver, batch.services.store
    if "consumer_groups" in batch.written:
        return
    reread = batch.reread(OFFSETS_TOPIC)
    is_stale = (
        driver.replay.is_first or reread or batch.ghosts or batch.clock.behind != driver.progress.behind
    )
    if not (batch.summary.group_records or (is_stale and store.has_rows("consumer_groups"))):
        return
    folded = fold.fold_groups(
        _less_ghosts(batch, store.read("consumer_groups")),
        batch.kind("group", "group_tombstone"),
        reread=reread,
        behind=batch.clock.behind,
    )
    write(batch, "consumer_groups", stamped(batch, folded))


def store_control_messages(batch: Batch) -> None:
    """What followers acknowledge and operators order, when the batch has any of it or reads all of it again."""
    store, summary = batch.services.store, batch.summary
    control = batch.services.config.control
    if _has_news(batch, "acks", control.acks_topic, summary.acks):
        folded = fold_control.fold_acks(
            _stored_before(batch, "acks", control.acks_topic),
            batch.kind("ack"),
            store.read("consumer_groups"),
            at_ms=batch.clock.at_ms,
        )
        write(batch, "acks", stamped(batch, folded))
    if _has_news(batch, "orders", control.commands_topic, summary.orders):
        folded = fold_control.fold_orders(
            _stored_before(batch, "orders", control.commands_topic), batch.kind("orders")
        )
        write(batch, "orders", stamped(batch, folded))
    if summary.acks or summary.orders or batch.driver.replay.is_first:
        tables = batch.driver.tables
        tables.has_acks, tables.has_orders = store.has_rows("acks"), store.has_rows("orders")


def _has_news(batch: Batch, name: str, topic: str, records_read: int) -> bool:
    if name in batch.written:
        return False
    return records_read > 0 or (bool(batch.reread(topic)) and batch.services.store.has_rows(name))


def _stored_before(batch: Batch, name: str, topic: str) -> DataFrame:
    """The table that the topic goes into; nothing of it when the topic is read again from its start."""
    stored = batch.services.store.read(name)
    return stored.limit(0) if batch.reread(topic) else stored


def store_quarantine(batch: Batch) -> None:
    """What could not be decoded."""
    if batch.summary.quarantined and "quarantine" not in batch.written:
        key = ["topic", "partition", "offset"]
        # What is read again is not bad again.
        known = batch.services.store.read("quarantine").select(*key)
        bad = batch.kind("bad").join(known, on=key, how="left_anti")
        write(batch, "quarantine", stamped(batch, bad))


def store_lag(batch: Batch) -> None:
    """The lag of every partition of every group, from what is stored by now."""
    if "partition_lag" in batch.written:
        return
    config, store, tables = batch.services.config, batch.services.store, batch.driver.tables
    groups = store.read("consumer_groups")
    held = fold.assigned_partitions(groups)
    if tables.has_acks:
        held = fold_control.held_partitions(held, handed_over(store), groups)
    folded = fold.fold_commits(
        _less_ghosts(batch, store.read("partition_lag")),
        fold.newest_commits(batch.kind("commit", "tombstone")),
        held,
        reread=batch.reread(OFFSETS_TOPIC),
        behind=batch.clock.behind,
    )
    measured = measure.measure_lag(
        folded,
        store.read("topic_offsets"),
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
    tables.versions |= store.versions(name for name in _BESIDE_LAGS if name not in tables.versions)
    batch.stamp = replace(batch.clock, versions=dict(tables.versions))
    write(batch, "partition_lag", measured)


def store_history(batch: Batch) -> None:
    """The rows of `partition_lag` whose turn it is."""
    if "lag_history" in batch.written:
        return
    due = batch.services.store.read("partition_lag").where("history_at = updated_at")
    if not due.isEmpty():
        write(batch, "lag_history", due.withColumn("date", F.to_date("updated_at")))


def maintain_tables(batch: Batch) -> None:
    """Compact, expire and clean, now and then."""
    config, store = batch.services.config, batch.services.store
    every = config.tables.upkeep_every_batches
    if batch.batch_id % every == every - 1:
        try:
            maintenance.run(
                store.root,
                at_ms=batch.clock.at_ms,
                keep_days=config.history.keep_days,
                storage_options=store.storage_options,
            )
        except Exception:
            # The batch is stored and published; what was not cleaned up now is next time.
            log.exception("maintenance failed", extra={"tables_root": store.root})


Step = Callable[[Batch], None]

STEPS: tuple[Step, ...] = (
    begin,
    choose_records,
    decode_records,
    settle,
    find_ghosts,
    store_topic_offsets,
    store_groups,
    store_control_messages,
    store_quarantine,
    store_lag,
    store_history,
    make_plans,
    publish_plans,
    maintain_tables,
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
    batch.driver.replay.start = None
    batch.driver.progress.behind = batch.clock.behind
    return seconds
