"""A step makes the moves of a target in the order of its rule: written here as it reads, for every move anew."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.evaluation.drain.cost import CostModel
from assignor.model.arrays import Int32s
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group
from pipeline.planning.problem.steps import moves_of, step_towards
from tests.support.assignors.groups import group, member

_MODEL = CostModel(horizon_s=86_400.0, floor_s=0.0)


@st.composite
def groups_with_targets(draw: st.DrawFn) -> tuple[Group, Assignment]:
    """Groups with and without capacities, many equal loads, and targets that may leave partitions to nobody."""
    n = draw(st.integers(1, 5))
    owners = draw(st.lists(st.integers(-1, n - 1), min_size=1, max_size=16))
    capacity = draw(st.sampled_from((None, 10.0)))
    members = [
        member(f"m{m}", "t", owned={"t": [p for p, by in enumerate(owners) if by == m]}, capacity=capacity)
        for m in range(n)
    ]
    lags = [draw(st.sampled_from((0, 5, 5, 100, 333))) for _ in owners]
    rates = [draw(st.sampled_from((0.0, 0.1, 0.3, 7.0))) for _ in owners]
    of = group({"t": len(owners)}, *members, lags={"t": lags}, rates={"t": rates})
    to = np.array([draw(st.integers(-1, n - 1)) for _ in owners], np.int32)
    why = np.where(to < 0, np.int8(Unassigned.NOBODY_TAKES), np.int8(0)).astype(np.int8)
    return of, Assignment(member=to, why=why)


def _by_the_rule(of: Group, to: Int32s, most: int) -> list[int]:
    """Each time the heaviest partition that the latest member gives to the earliest of its takers."""
    moved = moves_of(of, to)
    at = np.where(moved, of.owner, to)
    lag, rate, count = ([0.0] * of.n_members, [0.0] * of.n_members, [0] * of.n_members)

    def add(partition: int, to_member: int, sign: int) -> None:
        if to_member >= 0:
            lag[to_member] += sign * float(of.lag[partition])
            rate[to_member] += sign * float(of.rate[partition])
            count[to_member] += sign

    def load(one: int) -> tuple[float, int]:
        if one < 0:
            return 0.0, 0
        if of.capacity is None:
            return lag[one], count[one]
        return _MODEL.drain_of_one_s(lag[one], rate[one], float(of.capacity[one])), count[one]

    for partition in range(of.n_partitions):
        add(partition, int(at[partition]), 1)
    waiting = {int(p) for p in np.flatnonzero(moved)}
    for _ in range(most):
        giver = max({int(of.owner[p]) for p in waiting}, key=lambda one: (*load(one), -one))
        from_giver = [p for p in waiting if of.owner[p] == giver]
        taker = min({int(to[p]) for p in from_giver}, key=lambda one: (*load(one), one))
        fitting = [p for p in from_giver if to[p] == taker]
        partition = max(fitting, key=lambda p: (of.lag[p] + of.rate[p], p))
        waiting.remove(partition)
        at[partition] = taker
        add(partition, giver, -1)
        add(partition, taker, 1)
    return [int(one) for one in at]


@settings(max_examples=300, deadline=None)
@given(drawn=groups_with_targets(), share=st.floats(0, 1))
def test_step_makes_the_moves_that_its_rule_names_first(
    drawn: tuple[Group, Assignment], share: float
) -> None:
    of, target = drawn
    most = int(share * int(moves_of(of, target.member).sum()))

    step = step_towards(of, target, most, by_number=False)

    assert step.member.tolist() == _by_the_rule(of, target.member, most)
