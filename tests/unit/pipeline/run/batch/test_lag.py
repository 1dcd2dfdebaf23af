"""How many rows the groups of `partition_lag` are about, by which they are dealt out."""

from pipeline.run.batch.lag import _assigned
from tests.support.job.frames import arrow, member

GROUPS = arrow(
    "consumer_groups",
    {"group_id": "g", "members": [member("a", assigned={"t": [0, 1], "u": []}), member("b", assigned={})]},
    {"group_id": "h", "members": None},
    {
        "group_id": "i",
        "members": [member("c", assigned=None), member("d", assigned={"x": [5] * 3, "t": None})],
    },
)


def test_claims_are_counted_by_group() -> None:
    assert _assigned(GROUPS).tolist() == [2, 0, 3]
    assert _assigned(GROUPS.slice(2)).tolist() == [3]
    assert _assigned(GROUPS.slice(3)).tolist() == []
