"""Groups that lag: small ones drawn by hypothesis with everything a drain time depends on."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from hypothesis import strategies as st

from assignor.evaluation.drain.time import drain_s
from assignor.evaluation.validity import check
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.registry import strategy
from tests.support.assignors.groups import BLOBS, group, member, picked

FREE = {"move_cost_s": 0.0, "floor_s": 0.0, "min_gain": 0.0, "move_pause_s": 0.0}
"""Options under which nothing but the drain time counts."""
OPTIONS = st.sampled_from(
    [
        {"move_cost_s": move_cost_s, "floor_s": floor_s, "min_gain": min_gain, "move_pause_s": move_pause_s}
        for move_cost_s, floor_s, min_gain, move_pause_s in product(
            (0.0, 1.0, 5.0), (0.0, 20.0), (0.0, 0.05), (0.0, 6.0)
        )
    ]
)

_LAGS = (0, 1, 20, 90, 100, 250, 900, 5000)
_RATES = (0.0, 0.0, 1.0, 4.0, 9.0)


def time_s(group: Group, target: Assignment) -> float:
    """Drain time of a group whose capacities are known."""
    found = drain_s(group, target.member)
    assert found is not None
    return found


def lag_sticky(lagging: Group, **options: object) -> Assignment:
    """The answer of the strategy, options checked as the registry does."""
    return strategy("lag-sticky").assign(lagging, options)


def moved(lagging: Group, target: Assignment) -> int:
    """Partitions taken from a member that may keep them."""
    return int(((lagging.owner >= 0) & (target.member != lagging.owner)).sum())


def to_idle(group: Group, assignment: Assignment) -> int:
    """How many of the moves go to members that held nothing."""
    held = np.bincount(group.owner[group.owner >= 0], minlength=group.n_members)
    moves = (group.owner >= 0) & (assignment.member != group.owner)
    return int((held[assignment.member[moves]] == 0).sum())


def owned(*lags: Sequence[int], rates: Sequence[Sequence[float]] = (), capacity: float = 10.0) -> Group:
    """A topic t that everybody reads: each member owns the partitions whose lags it is given."""
    numbers = iter(range(sum(map(len, lags))))
    members = [
        member(f"m{m}", "t", owned={"t": [next(numbers) for _ in mine]}, capacity=capacity)
        for m, mine in enumerate(lags)
    ]
    flat = [records for mine in lags for records in mine]
    arriving = [records_s for mine in rates for records_s in mine] or [0.0] * len(flat)
    return group({"t": len(flat)}, *members, lags={"t": flat}, rates={"t": arriving})


@st.composite
def lagging_groups(draw: st.DrawFn, *, most_partitions: int = 9, most_members: int = 3) -> Group:
    """Groups with known capacities, equal and unequal ones, and partitions that nobody owns."""
    n_members = draw(st.integers(1, most_members))
    counts = {"t": draw(st.integers(0, most_partitions - 2)), "u": draw(st.integers(0, 2))}
    capacities = picked((10.0, 10.0, 25.0), draw(BLOBS), n_members)
    reads = picked(("tu", "tu", "t", "u"), draw(BLOBS), n_members)
    n = sum(counts.values())
    owners = picked((*range(n_members), -1), draw(BLOBS), n)
    of_topic = {"t": owners[: counts["t"]], "u": owners[counts["t"] :]}
    members = [
        member(
            f"m{m}",
            *reads[m],
            owned={topic: np.flatnonzero(np.array(of_topic[topic]) == m).tolist() for topic in counts},
            capacity=capacities[m],
        )
        for m in range(n_members)
    ]
    lags, rates = picked(_LAGS, draw(BLOBS), n), picked(_RATES, draw(BLOBS), n)
    return group(
        counts,
        *members,
        lags={"t": lags[: counts["t"]], "u": lags[counts["t"] :]},
        rates={"t": rates[: counts["t"]], "u": rates[counts["t"] :]},
    )


def remarks(lagging: Group, **options: object) -> str:
    """What the strategy says, the answer checked."""
    target = lag_sticky(lagging, **options)
    check(lagging, target)
    return "; ".join(target.remarks)
