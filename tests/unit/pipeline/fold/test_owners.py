"""Who has each partition, and which topics members claim."""

import pyarrow as pa

from pipeline.fold.control_messages import HANDED_OVER
from pipeline.fold.owners import assigned_topics, held_partitions
from tests.support.job.frames import arrow, member, shown

GROUPS = arrow(
    "consumer_groups",
    {"group_id": "g", "members": [member("a", assigned={"t": [0, 1], "u": []}), member("b", assigned={})]},
    {"group_id": "h", "members": None},
    {
        "group_id": "i",
        "members": [member("c", assigned=None), member("d", assigned={"x": [5] * 3, "t": None})],
    },
)


def test_topics_of_claims_are_those_of_all_members() -> None:
    assert sorted(assigned_topics(GROUPS)["topic"].to_pylist()) == ["t", "u", "x"]
    assert assigned_topics(GROUPS.slice(1, 1)).num_rows == 0


def test_claims_on_topics_that_nobody_knows_are_left_out() -> None:
    held = held_partitions(GROUPS, HANDED_OVER.empty_table(), pa.array(["t", "u"]))

    assert shown(held, "group_id", "topic", "partition", "member_id") == [
        ("g", "t", 0, "a"),
        ("g", "t", 1, "a"),
    ]
    assert held_partitions(GROUPS, HANDED_OVER.empty_table(), pa.array([], pa.string())).num_rows == 0
