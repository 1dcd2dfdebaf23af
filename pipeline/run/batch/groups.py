"""The steps of groups: those that are gone unseen, and records of those that are there."""

from collections.abc import Mapping

import pyarrow.compute as pc

from pipeline.fold.groups import fold_groups
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.writes import ghosts_of, less_ghosts, stamped, write_measured
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
    types = {
        row["group_id"]: row["group_type"]
        for row in store.rows("consumer_groups", ["group_id", "group_type"])
    }
    committed = store.arrow(
        "partition_lag", ["group_id", "topic", "partition"], where=pc.field("committed_offset").is_valid()
    )
    found: dict[str, list[PartitionKey]] = {name: [] for name, kind in types.items() if kind == "classic"}
    for row in committed.to_pylist():
        if types.get(row["group_id"], "classic") == "classic":
            found.setdefault(row["group_id"], []).append((row["topic"], row["partition"]))
    return {name: tuple(keys) for name, keys in found.items()}


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
        less_ghosts(store.arrow("consumer_groups"), ghosts_of(batch)),
        batch.decoded.kind("group", "group_tombstone"),
        reread=reread,
        behind=batch.clock.behind,
    )
    write_measured(batch, "consumer_groups", stamped(batch, folded))
