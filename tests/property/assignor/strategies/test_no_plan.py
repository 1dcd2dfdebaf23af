"""What `lag-sticky` says that no plan can do, no assignment of a small group does, near `floor_s` and with its defaults."""

import re
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.model.arrays import Bools, Floats
from assignor.model.group import Group
from tests.support.assignors.drain_groups import lag_sticky
from tests.support.assignors.groups import group, member

_NEAR = 1 + 1e-3
_FLOOR_S = 20.0
_NO_PLAN = re.compile(
    r"no plan of at most (\d+) (drains it sooner|gives the busiest member)(?: by (\S+) s for each)?"
)


@st.composite
def groups_near_the_floor(draw: st.DrawFn) -> Group:
    """Two or three members of 50 to 200 records/s, 10 to 60 s behind or hardly any headroom left."""
    n = draw(st.integers(2, 3))
    owners = draw(st.lists(st.integers(0, n - 1), min_size=3, max_size=6))
    is_late = draw(st.booleans())
    lags = [draw(st.integers(0, 2500)) if is_late else 0 for _ in owners]
    rates = [float(draw(st.integers(0, 12 if is_late else 48))) for _ in owners]
    members = [
        member(
            f"m{m}",
            "t",
            owned={"t": [p for p, by in enumerate(owners) if by == m]},
            capacity=draw(st.sampled_from((50.0, 100.0, 100.0, 200.0))),
        )
        for m in range(n)
    ]
    return group({"t": len(owners)}, *members, lags={"t": lags}, rates={"t": rates})


def _all(of: Group) -> tuple[Floats, Floats, Floats]:
    """Drain time, least headroom and moves of every assignment."""
    assert of.capacity is not None
    capacity = of.capacity
    members = np.array(list(product(range(of.n_members), repeat=of.n_partitions)))
    held: Bools = members[:, :, None] == np.arange(of.n_members)
    lag, rate = (np.einsum("apm,p->am", held, values.astype(float)) for values in (of.lag, of.rate))
    spare = capacity - rate
    times = np.where(spare > 0, lag / np.where(spare > 0, spare, 1.0), np.inf)
    times[(spare >= 0) & (lag == 0)] = 0.0
    moves = (members != of.owner).sum(axis=1).astype(float)
    return times.max(axis=1), (spare / capacity).min(axis=1), moves


@settings(max_examples=300, deadline=None)
@given(
    of=groups_near_the_floor(),
    max_moves=st.integers(1, 4),
    move_cost_s=st.sampled_from((0.0, 1.0, 10.0)),
)
def test_no_plan_does_what_the_remark_denies(of: Group, max_moves: int, move_cost_s: float) -> None:
    target = lag_sticky(of, max_moves=max_moves, move_cost_s=move_cost_s)
    said = "; ".join(target.remarks)
    found = _NO_PLAN.search(said)
    if found is None:
        return
    times, headroom, moves = _all(of)
    now = moves == 0
    allowed = moves <= int(found[1])
    if found[2] == "gives the busiest member":
        if "more headroom" in said:
            assert headroom[allowed].max() <= headroom[now][0] + 1e-3
        else:
            assert move_cost_s > 0
        return
    assert float(found[3] or 0) == move_cost_s
    counted = times
    if "counted as 20 s" in said:
        counted = np.where(headroom >= 0.1, np.maximum(times, _FLOOR_S), np.inf)
    assert (counted + move_cost_s * moves)[allowed].min() >= times[now][0] / _NEAR
