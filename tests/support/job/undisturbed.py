"""What tables must have in common with those of a run over the same topic that nobody disturbed."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from deltalake import DeltaTable

Row = tuple[Any, ...]

COMMIT = ("group_id", "topic", "partition", "committed_offset", "commit_position", "leader_epoch")
ACK = ("group_id", "kind", "id", "generation", "epoch", "position")
ORDER = ("group_id", "pause_reason", "position")
_TOLD = ("group_id", "group_type", "generation", "members")
_GONE = ("gone",)
GROUP = ("group_id", "group_type", "state", "assignor", "generation", "members", "group_position")


def rows(root: str, table: str, columns: tuple[str, ...]) -> list[Row]:
    """Some columns of a table, sorted."""
    read = DeltaTable(f"{root}/{table}").to_pyarrow_table(columns=list(columns)).to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in read), key=repr)


def assert_same_state(disturbed: str, calm: str) -> None:
    """Commits, groups with their members, acknowledgements and orders are the same under both roots."""
    for table, columns in (
        ("partition_lag", COMMIT),
        ("consumer_groups", GROUP),
        ("acks", ACK),
        ("orders", ORDER),
    ):
        stored = rows(disturbed, table, columns)
        assert stored, table
        assert stored == rows(calm, table, columns), table


def assert_nothing_doubled(root: str) -> None:
    """No history row, no quarantine row and no decision is there twice, and no change of a group is told twice."""
    for table, key in (
        ("lag_history", ("group_id", "topic", "partition", "updated_at")),
        ("group_history", ("group_id", "updated_at")),
        ("recommendations", ("group_id", "created_at")),
        ("quarantine", ("topic", "partition", "offset", "kind")),
    ):
        counted = Counter(rows(root, table, key))
        assert {row for row, count in counted.items() if count > 1} == set(), table
    for group, told in _told(root).items():
        assert all(one != next_one for one, next_one in pairwise(told)), group


def assert_groups_are_told(root: str) -> None:
    """What the history says last of each group is what the group is, or that it is gone."""
    last = {group: told[-1] for group, told in _told(root).items()}
    groups = {group: _content(*state) for group, *state in rows(root, "consumer_groups", _TOLD)}
    assert groups
    assert {group: content for group, content in last.items() if content != _GONE} == groups


def _told(root: str) -> dict[str, list[Row]]:
    """By group, what its rows say, in the order of time."""
    told: dict[str, list[Row]] = {}
    for _, why, group, *state in sorted(
        rows(root, "group_history", ("updated_at", "why", *_TOLD)), key=lambda row: (row[0], row[2])
    ):
        told.setdefault(group, []).append(_GONE if why == "gone" else _content(*state))
    return told


def _content(group_type: str, generation: int | None, members: list[dict[str, Any]] | None) -> Row:
    each = [(one["member_id"], one["group_instance_id"], tuple(one["topics"])) for one in members or ()]
    return group_type, generation, tuple(sorted(each, key=repr))


def assert_one_content_per_epoch(root: str, sent: Iterable[tuple[str, int, str]]) -> None:
    """An epoch says one thing, in the table and on the control topic.

    All that is on the topic is in the table. A plan that ended before it could be sent is in the table alone, and so is
    one that a dry driver has found unsent.

    Args:
        root: Of the tables.
        sent: Group, epoch and value of the records on the control topic.
    """
    decided = [
        row for row in rows(root, "recommendations", ("group_id", "epoch", "record")) if row[1] is not None
    ]
    published = list(sent)
    contents: dict[tuple[str, int], set[str]] = {}
    for group, epoch, value in (*decided, *published):
        contents.setdefault((group, epoch), set()).add(value)

    assert {key for key, values in contents.items() if len(values) > 1} == set()
    assert {row[:2] for row in published} <= {row[:2] for row in decided}
    assert published
