"""Decode: coordinators' answers about groups, as rows of the same form as records of the offsets topic.

A commit or group in an answer comes from no record, so it has neither `offsets_partition` nor `position`; it describes
the present state. Values that coordinators do not report are null: commit times, generations, subscriptions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline.decode.rows import filled, rows_of
from pipeline.kafka.poke_member import is_poke
from pipeline.kafka.sources.groups.ask import GroupAnswer, Member
from pipeline.kafka.sources.groups.settings import Listing

Row = dict[str, Any]

UNTOLD = "its coordinator does not report the member's partitions while the group rebalances"
"""Why the assignment of a member is unknown."""


def listing_rows(listing: Listing) -> Iterator[pa.RecordBatch]:
    """Rows of kind 'group_listing' and 'listed'."""
    groups = [{"row_kind": "listed", "group_id": one.group_id} for one in listing.groups]
    yield rows_of([{"row_kind": "group_listing", "error": listing.error}, *groups])


def asked_rows(
    answers: Sequence[GroupAnswer], wants_topic: Callable[[str], bool], counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Return rows of kind 'asked', 'group' and 'commit', one kind per batch; add their numbers to `counts`."""
    if not answers:
        return
    yield rows_of(
        [{"row_kind": "asked", "group_id": one.group.group_id, "error": one.error} for one in answers]
    )
    yield rows_of([_group(one) for one in answers])
    answered = sum(one.error is None for one in answers)
    commits = _commits(answers, wants_topic)
    if commits.num_rows:
        yield commits
    counts["group"] += answered
    counts["commit"] += commits.num_rows
    counts["group_unanswered"] += len(answers) - answered


def _group(answer: GroupAnswer) -> Row:
    group = answer.group
    return {
        "row_kind": "group",
        "group_id": group.group_id,
        "group_type": group.group_type,
        "state": group.state,
        "assignor": answer.assignor,
        "members": None
        if answer.members is None
        else [
            _member(one)
            for one in answer.members
            if not is_poke(one.client_id, reads_nothing=not one.assigned)
        ],
    }


def _member(member: Member) -> Row:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "assigned": member.assigned,
        "error": UNTOLD if member.assigned is None else None,
    }


def _commits(answers: Sequence[GroupAnswer], wants_topic: Callable[[str], bool]) -> pa.RecordBatch:
    is_wanted: dict[str, bool] = {}
    for topic in {commit.topic for one in answers for commit in one.commits}:
        is_wanted[topic] = wants_topic(topic)
    found = [
        (one.group.group_id, commit) for one in answers for commit in one.commits if is_wanted[commit.topic]
    ]
    return filled(
        "commit",
        group_id=pa.array([group_id for group_id, _ in found], pa.string()),
        topic=pa.array([commit.topic for _, commit in found], pa.string()),
        partition=pa.array([commit.partition for _, commit in found], pa.int32()),
        committed_offset=pa.array([commit.offset for _, commit in found], pa.int64()),
        leader_epoch=pa.array([commit.leader_epoch for _, commit in found], pa.int32()),
    )
