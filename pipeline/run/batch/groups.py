"""The steps of groups: those that are gone unseen, and records of those that are there."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from pipeline.fold.step import fold_groups
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.writes import less_ghosts, stamped, write
from pipeline.run.driver import Batch
from pipeline.tables.store import Store


def find_ghosts(batch: Batch) -> None:
    """Find groups whose deletion was missed: now and then, while everything is read to its end."""
    services = batch.services
    if batch.reread(OFFSETS_TOPIC):
        services.ghosts.restart()
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
    folded = fold_groups(
        less_ghosts(batch, store.read("consumer_groups")),
        batch.kind("group", "group_tombstone"),
        reread=reread,
        behind=batch.clock.behind,
    )
    write(batch, "consumer_groups", stamped(batch, folded))
