"""How fast the members of a group are taken to be."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.planning.group import to_group
from tests.support.facts import RULES, group, partitions

THREE = {"a": {"t": (0, 1)}, "b": {"t": (2,)}, "c": {"t": (3,)}}


@pytest.mark.parametrize(
    ("drain_rate", "expected"),
    [
        ([5.0, 5.0, 60.0, 4.0], [10.0, 60.0, 10.0]),
        ([5.0, 5.0, np.nan, 4.0], [10.0, 10.0, 10.0]),
        ([40.0, 40.0, 60.0, 4.0], [80.0, 80.0, 80.0]),
    ],
    ids=["slow member has the backlog", "never seen to drain", "fast member has the backlog"],
)
def test_member_that_keeps_up_is_as_fast_as_the_others_and_not_slower_than_it_is(
    drain_rate: list[float], expected: list[float]
) -> None:
    lags = replace(partitions([900, 800, 10, 0]), drain_rate=np.array(drain_rate))

    found = to_group(group(THREE), lags, RULES)

    assert found.capacity is not None
    assert found.capacity.tolist() == expected
