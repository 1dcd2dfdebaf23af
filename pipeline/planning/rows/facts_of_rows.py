"""Plan: the rows of one group to the facts that a decision is made from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from assignor.model.topics import java_order
from assignor.protocol.commands import Orders, parse_pin
from pipeline.lag.columns import bools, floats, int64s, millis
from pipeline.planning.facts import AckFacts, GroupFacts, MemberFacts, PartitionFacts
from pipeline.planning.values import Published


def group_facts(
    row: Mapping[str, Any],
    *,
    cluster: str,
    behind: Sequence[int],
    provisional_reason: str | None,
    held: str | None = None,
) -> GroupFacts:
    """The group, its members, and what they and operators say.

    Args:
        row: Of the group, everything but its partitions.
        cluster: Name of the cluster.
        behind: Partitions of the offsets topic whose groups are provisional.
        provisional_reason: Why they are.
        held: Why no group may have a plan; None when they may.
    """
    partition = row["offsets_partition"] if row["offsets_partition"] is not None else row["commits_partition"]
    return GroupFacts(
        group_id=row["group_id"],
        group_type=row["group_type"],
        state=row["state"],
        protocol_type=row["protocol_type"],
        assignor=row["assignor"],
        generation=row["generation"],
        members=_members(row),
        provisional=held or (provisional_reason if partition in behind else None),
        acks=tuple(
            AckFacts(kind=ack["kind"], member_id=ack["member_id"], epoch=ack["epoch"], why=ack["why"])
            for ack in row.get("acks") or ()
        ),
        orders=_orders(row["orders"], cluster) if row.get("orders") else None,
    )


def _members(row: Mapping[str, Any]) -> tuple[MemberFacts, ...]:
    """The members, each with what it holds now."""
    moved = {(one["topic"], one["partition"]): one["member_id"] for one in row.get("moved") or ()}
    gained: dict[str, list[tuple[str, int]]] = {}
    for place, member_id in sorted(moved.items()):
        gained.setdefault(member_id, []).append(place)
    return tuple(
        _member_facts(member, moved, gained.get(member["member_id"], [])) for member in row["members"] or ()
    )


def _member_facts(
    member: Mapping[str, Any], moved: Mapping[tuple[str, int], str | None], gained: list[tuple[str, int]]
) -> MemberFacts:
    # Arrow maps are lists of pairs.
    held = {topic: [n for n in numbers if (topic, n) not in moved] for topic, numbers in member["assigned"]}
    for topic, number in gained:
        held.setdefault(topic, []).append(number)
    return MemberFacts(
        member_id=member["member_id"],
        instance_id=member["group_instance_id"],
        client_id=member["client_id"],
        client_host=member["client_host"],
        topics=tuple(member["topics"]),
        assigned={topic: tuple(numbers) for topic, numbers in held.items()},
        error=member["error"],
    )


def _orders(row: Mapping[str, Any], cluster: str) -> Orders:
    triggered, ordered = row["triggered_at"], row["ordered_at"]
    return Orders(
        cluster=cluster,
        group=row["group_id"],
        paused=row["paused"],
        pause_reason=row["pause_reason"] or "",
        pinned={topic: parse_pin(text) for topic, text in row["pinned"]},
        triggered_at_ms=None if triggered is None else round(triggered.timestamp() * 1000),
        at_ms=round(ordered.timestamp() * 1000),
        by=row["ordered_by"] or "",
    )


def partition_facts(partitions: pa.Table) -> PartitionFacts:
    """The partitions that the group subscribes to, sorted."""
    table = partitions.combine_chunks()
    topics = table["topic"].to_pylist()
    numbers = int64s(_column(table, "partition"))
    names = sorted(set(topics), key=java_order)
    rank = {name: index for index, name in enumerate(names)}
    order = np.lexsort((numbers, np.array([rank[topic] for topic in topics], np.int64)))
    return PartitionFacts(
        topic=[topics[index] for index in order.tolist()],
        partition=numbers[order],
        committed=int64s(_column(table, "committed_offset"))[order],
        log_start=int64s(_column(table, "log_start_offset"))[order],
        log_end=int64s(_column(table, "log_end_offset"))[order],
        observed_at_ms=millis(_column(table, "observed_at"))[order],
        arrival_rate=floats(_column(table, "arrival_rate"))[order],
        drain_rate=floats(_column(table, "drain_rate"))[order],
        lag_age_s=floats(_column(table, "lag_seconds"))[order],
        incomparable=bools(_column(table, "is_incomparable"))[order],
        unanswered=_column(table, "error").take(pa.array(order)).to_pylist(),
    )


def _column(table: pa.Table, name: str) -> pa.Array:
    chunks = table[name].chunks
    return chunks[0] if chunks else pa.array([], table.schema.field(name).type)


def published(row: Mapping[str, Any]) -> Published | None:
    """The group's newest plan on the control topic."""
    if row["last_epoch"] is None:
        return None
    return Published(
        epoch=row["last_epoch"],
        target_hash=row["last_target"],
        base_hash=row["last_base"],
        valid_until_ms=row["last_valid_ms"],
    )
