"""The steps of groups: those that are gone unseen, and records of those that are there."""

from collections.abc import Mapping

import pyarrow.compute as pc

from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.writes import stamped, write_measured
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
    """Classic and unconfirmed groups, and those without a record, with the partitions that they have committed."""
    rows = store.rows("consumer_groups", ["group_id", "group_type", "unconfirmed_reason"])
    # Where the newest record of a KIP-848 group was deleted unread, nothing else tells that it is gone.
    types = {
        row["group_id"]: "classic"
        if row["unconfirmed_reason"] and row["group_type"] == "consumer"
        else row["group_type"]
        for row in rows
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
    """The groups as they were folded for the history, which is written first."""
    if batch.groups is not None:
        write_measured(batch, "consumer_groups", stamped(batch, batch.groups))
