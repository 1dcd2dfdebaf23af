"""Groups and their members, as `lagwise groups` lists them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import MissingTableError
from pipeline.fold.members import with_known_members
from pipeline.operate.output import NONE, Column, Row, iterate, names, plain
from pipeline.tables.reading import Readable


def count_of(name: str) -> Callable[[Row], str]:
    """A cell with the length of the list of this name; `-` if it is unknown."""
    return lambda row: NONE if row[name] is None else str(len(row[name]))


def _state_cell(row: Row) -> str:
    return f"{plain(row['state'])}{'*' if row['provisional'] else ''}"


GROUP = Column(header="GROUP", name="group_id")
COLUMNS = (
    GROUP,
    Column(header="TYPE", name="group_type"),
    Column(header="STATE", name="state", cell=_state_cell),
    Column(header="ASSIGNMENT-STRATEGY", name="assignor"),
    Column(header="PROTOCOL", name="rebalance_protocol"),
    Column(header="GENERATION", name="generation", is_number=True),
    Column(header="#MEMBERS", name="members", cell=count_of("members"), is_number=True),
    Column(header="PROTOCOL-TYPE", name="protocol_type", is_wide=True),
    Column(header="LEADER", name="leader", is_wide=True),
    Column(header="TARGET-EPOCH", name="target_epoch", is_number=True, is_wide=True),
    Column(header="UNCONFIRMED", name="unconfirmed_reason", is_wide=True),
    Column(header="UPDATED-AT", name="updated_at", is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)
"""Columns of `group_rows`, for rows `with_provisional`."""


def _plan(row: Row) -> str:
    since = row["awaiting_since"]
    return plain(row["decision"]) if since is None else f"{row['decision']} since {plain(since)}"


PLAN = (
    Column(header="PLAN", name="decision", cell=_plan),
    Column(header="AWAITING-SINCE", name="awaiting_since", is_wide=True),
)
"""Columns of `with_decisions`."""
PROVISIONAL = Column(header="PROVISIONAL", name="provisional", is_wide=True)
"""Column of `with_provisional`."""
_DECISION = {"decision": pa.string(), "awaiting_since": pa.timestamp("us", "UTC")}


def assignment_text(assigned: dict[str, list[int]]) -> str:
    """Partitions as kafka-consumer-groups writes them: `t1:0,1;t2:3`, sorted; `-` for none."""
    topics = (f"{topic}:{','.join(map(str, sorted(assigned[topic])))}" for topic in sorted(assigned))
    return plain(";".join(topics) or None)


def _held(name: str) -> Callable[[Row], str]:
    return lambda row: assignment_text(row[name] or {})


def _topics(row: Row) -> str:
    return plain(",".join(sorted(row["topics"] or ())) or None)


MEMBERS = (
    Column(header="CONSUMER-ID", name="member_id"),
    Column(header="HOST", name="client_host"),
    Column(header="CLIENT-ID", name="client_id"),
    Column(header="#PARTITIONS", name="partitions", is_number=True),
    Column(header="ASSIGNMENT", name="assigned", cell=_held("assigned")),
    Column(header="INSTANCE-ID", name="group_instance_id", is_wide=True),
    Column(header="RACK", name="rack", is_wide=True),
    Column(header="TOPICS", name="topics", cell=_topics, is_wide=True),
    Column(header="ERROR", name="error", is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)
"""Columns of `by_member`."""


PROGRESS = (
    Column(header="EPOCH", name="member_epoch", is_number=True, is_wide=True),
    Column(header="TARGET", name="target", cell=_held("target"), is_wide=True),
    Column(header="TO-GIVE-UP", name="pending_revocation", cell=_held("pending_revocation"), is_wide=True),
    Column(header="REGEX", name="topic_regex", is_wide=True),
    Column(header="BEHIND-SINCE", name="behind_since", is_wide=True),
)
"""Columns of `with_progress`, for members of KIP-848 groups."""


def with_progress(members: pa.Table, tables: Readable, wanted: pc.Expression | None) -> pa.Table:
    """Rows `by_member` with the progress of each member of a KIP-848 group; null for members of other groups.

    Raises:
        StoreError: The tables cannot be read.
    """
    keys = ("cluster", "group_id")
    groups = tables.read("consumer_groups", columns=[*keys, "reconciliation"], where=wanted)
    reached = [
        {**row, **{key: group[key] for key in keys}}
        for group in iterate(groups)
        for row in group["reconciliation"] or ()
    ]
    kind = groups.schema.field("reconciliation").type
    # Tables of earlier versions lack the column.
    kinds = {
        name: kind.value_type.field(name).type if pa.types.is_list(kind) else pa.null()
        for name in names(PROGRESS)
    }
    return _joined(members, reached, (*keys, "member_id"), kinds)


def with_provisional(rows: pa.Table, behind: Sequence[int]) -> pa.Table:
    """Rows of `group_rows` with `provisional`: whether they may be out of date.

    Args:
        rows: The rows.
        behind: Partitions of the offsets topic that are not read to their end (`Stamp.behind`).
    """
    is_behind = pc.is_in(
        rows["offsets_partition"], pa.array(behind, rows.schema.field("offsets_partition").type)
    )
    return rows.append_column("provisional", pc.or_(is_behind, rows["unconfirmed_reason"].is_valid()))


def group_rows(tables: Readable, wanted: pc.Expression | None) -> pa.Table:
    """The groups that match a filter of `cluster` and `group_id`, by name, including those that only have commits.

    They have `offsets_partition` in addition to the columns.

    Raises:
        MissingTableError: The stream has not made the tables yet.
        StoreError: They cannot be read.
    """
    rows = with_known_members(
        tables.read("consumer_groups", columns=[*names(COLUMNS), "offsets_partition"], where=wanted)
    )
    rows = pa.concat_tables([rows, _without_record(rows, tables, wanted)], promote_options="default")
    return rows.sort_by([("group_id", "ascending"), ("cluster", "ascending")])


def _without_record(known: pa.Table, tables: Readable, wanted: pc.Expression | None) -> pa.Table:
    """Groups that only have commits, in the columns of `known`; all null except what their commits show."""
    keys = ["cluster", "group_id"]
    try:
        lag = tables.read("partition_lag", columns=[*keys, "offsets_partition", "updated_at"], where=wanted)
    except MissingTableError:
        return known.slice(0, 0)
    # All commits of a group are in one partition of the offsets topic.
    newest = lag.group_by(keys).aggregate([("offsets_partition", "max"), ("updated_at", "max")])
    committed = newest.rename_columns([*keys, "offsets_partition", "updated_at"])
    rows = committed.join(known.select(keys), keys=keys, join_type="left anti").to_pylist()
    nullable = pa.schema([field.with_nullable(True) for field in known.schema])
    return pa.Table.from_pylist(rows, schema=nullable)


def with_decisions(rows: pa.Table, tables: Readable, wanted: pc.Expression | None) -> pa.Table:
    """The rows with the decision about each group; null if there is none.

    Raises:
        StoreError: The tables cannot be read.
    """
    keys = ("cluster", "group_id")
    try:
        found = tables.read("plan_state", columns=[*keys, *_DECISION], where=wanted).to_pylist()
    except MissingTableError:
        found = []
    return _joined(rows, found, keys, _DECISION)


def _joined(
    rows: pa.Table, found: Iterable[Row], keys: Sequence[str], kinds: Mapping[str, pa.DataType]
) -> pa.Table:
    """The rows with columns of the found row of the same keys; null if there is none."""
    by_key = {tuple(row[key] for key in keys): row for row in found}
    matched = [by_key.get(key, {}) for key in zip(*(rows[key].to_pylist() for key in keys), strict=True)]
    for name, kind in kinds.items():
        rows = rows.append_column(name, pa.array([row.get(name) for row in matched], kind))
    return rows


def by_member(groups_rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """One row per member with the keys of its group, in the order of groups and then of member ids."""
    member_type = groups_rows.schema.field("members").type.value_type
    rows: list[dict[str, Any]] = [
        {**{key: row[key] for key in keys}, "partitions": _count(member)} | member
        for row in iterate(groups_rows)
        for member in sorted(row["members"] or (), key=lambda member: str(member["member_id"]))
    ]
    fields = [(name, groups_rows.schema.field(name).type) for name in keys]
    return pa.Table.from_pylist(
        rows, schema=pa.schema([*fields, ("partitions", pa.int64()), *member_type.fields])
    )


def _count(member: Row) -> int | None:
    """Number of partitions of the member; None if unknown."""
    # A KIP-848 member with an error may have partitions of topics whose names are unknown.
    return (
        None if member["assigned"] is None or member["error"] else sum(map(len, member["assigned"].values()))
    )
