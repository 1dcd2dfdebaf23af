"""The step that local search takes, with every move and swap tried one by one as judge."""

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.evaluation.drain.bound import lower_bound
from assignor.evaluation.drain.work import Work
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.search.candidates import candidates_at
from assignor.strategies.lag_sticky.search.deadline import _fewest_in_rows, fewest_covering
from assignor.strategies.lag_sticky.search.neighbourhood import Neighbourhood
from assignor.strategies.lag_sticky.search.state import SearchState
from assignor.strategies.lag_sticky.start import build_problem
from assignor.strategies.registry import strategy
from tests.support.assignors.drain_groups import FREE, lagging_groups

NONE = np.zeros(0, np.int64)
WEIGHTS = st.lists(st.integers(0, 9).map(float), max_size=6).map(lambda drawn: sorted(drawn, reverse=True))


@settings(max_examples=60)
@given(group=lagging_groups(most_members=4), budget=st.integers(0, 2), price_s=st.sampled_from((0.0, 5.0)))
def test_no_move_or_swap_within_the_budget_is_better_than_the_one_that_is_taken(
    group: Group, budget: int, price_s: float
) -> None:
    problem = posed(group, price_s)
    state = SearchState(problem, candidates_at(problem, NONE, 0.0), NONE, problem.solution({}), 0.0)
    loads_s = state.loads_s()
    slow = int(loads_s.argmax())
    costs = list(improvements(problem, slow, loads_s.tolist(), budget))

    step = Neighbourhood(state, slow, loads_s, budget).best()

    if costs:
        assert step is not None
        assert step.moves <= budget
        assert abs(step.cost_s - min(costs)) < 1e-6 * max(min(costs), 1.0) + 1e-3
    elif step is not None:
        first, second = step.transfers
        assert first.to_member == second.from_member


@settings(max_examples=60)
@given(
    group=lagging_groups(most_members=4),
    budget=st.integers(0, 2),
    price_s=st.sampled_from((0.0, 5.0)),
    floor_s=st.sampled_from((0.0, 20.0)),
)
def test_bound_on_weights_leaves_out_no_step_that_would_be_taken(
    group: Group, budget: int, price_s: float, floor_s: float
) -> None:
    problem = posed(group, price_s, floor_s)
    state = SearchState(problem, candidates_at(problem, NONE, 0.0), NONE, problem.solution({}), 0.0)
    loads_s = state.loads_s()

    for slow in range(problem.n_members):
        step = Neighbourhood(state, slow, loads_s, budget).best()

        with patch.object(Neighbourhood, "_rooms", lambda _: np.full(problem.n_members, np.inf)):
            assert Neighbourhood(state, slow, loads_s, budget).best() == step


@given(weights=WEIGHTS, excess=st.integers(1, 30).map(float), skip=st.integers(0, 2))
def test_fewest_of_one_member_are_those_of_a_row(weights: list[float], excess: float, skip: int) -> None:
    picked, is_enough = _fewest_in_rows(np.array([weights]), np.array([excess]), skip=skip)

    expected = np.flatnonzero(picked[0]).tolist() if is_enough[0] else None
    assert fewest_covering(weights, excess, skip=skip) == expected


def posed(group: Group, price_s: float, floor_s: float = 0.0) -> Problem:
    terms = {**FREE, "move_cost_s": price_s, "floor_s": floor_s}
    options = Options(**strategy("lag-sticky").check_options(terms))  # type: ignore[arg-type]  # checked
    assert group.capacity is not None
    work = Work.of(group, group.capacity)
    return build_problem(group, options, group.capacity, lower_bound(work).time_s)


def improvements(problem: Problem, slow: int, loads_s: list[float], budget: int) -> Iterator[float]:
    """Cost of every move and swap that lowers the larger load of the two members by more than its moves cost."""
    start = problem.solution({})
    held = {m: np.flatnonzero(problem.start[:-1] == m).tolist() for m in range(problem.n_members)}
    for taker in set(held) - {slow}:
        for given_ in held[slow]:
            for back in [None, *held[taker]]:
                changes = {given_: taker} | ({} if back is None else {back: slow})
                if not all(member in problem.readers_of(p) for p, member in changes.items()):
                    continue
                solution = problem.solution(changes)
                moves, after_s = solution.moves - start.moves, loads_of(problem, solution)
                cost_s = max(after_s[slow], after_s[taker]) + problem.options.move_cost_s * moves
                if moves <= budget and cost_s < loads_s[slow] * (1 - 1e-5) - 1e-3:
                    yield cost_s


def loads_of(problem: Problem, solution: Solution) -> list[float]:
    loads: list[float] = problem.cost_model.load_s(solution.lag, solution.rate, problem.capacity).tolist()
    return loads
