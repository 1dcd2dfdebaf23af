"""The parts of the search, each where its own rule shows."""

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.evaluation.drain.bound import lower_bound
from assignor.evaluation.drain.time import drain_s
from assignor.evaluation.drain.work import Work
from assignor.model.group import Group
from assignor.strategies.lag_sticky.options import Options as LagStickyOptions
from assignor.strategies.lag_sticky.placement import Placement
from assignor.strategies.lag_sticky.problem import Problem, Solution
from assignor.strategies.lag_sticky.search.bounds import SearchBounds
from assignor.strategies.lag_sticky.search.candidates import by_member_and_weight, candidates_at
from assignor.strategies.lag_sticky.search.deadline import Deadline, fewest_covering
from assignor.strategies.lag_sticky.search.local_search import Visited, improve
from assignor.strategies.lag_sticky.search.neighbourhood import Improvement, Neighbourhood
from assignor.strategies.lag_sticky.search.packing import DeadlinePacker
from assignor.strategies.lag_sticky.search.residual_capacity import residual_capacity
from assignor.strategies.lag_sticky.search.search import Search
from assignor.strategies.lag_sticky.search.state import SearchState, Transfer
from assignor.strategies.lag_sticky.start import build_problem
from assignor.strategies.registry import strategy
from tests.support.assignors.drain_groups import FREE, lag_sticky, moved, owned
from tests.support.assignors.groups import group, member

NONE = np.zeros(0, np.int64)


def problem(lagging: Group, **options: object) -> Problem:
    terms = LagStickyOptions(**strategy("lag-sticky").check_options({**FREE, **options}))  # type: ignore[arg-type]  # checked
    assert lagging.capacity is not None
    bound = lower_bound(Work.of(lagging, lagging.capacity))
    return build_problem(lagging, terms, lagging.capacity, bound.time_s)


def step(lagging: Group, budget: int = 9, **options: object) -> Improvement | None:
    """The best step for member 0."""
    posed = problem(lagging, **options)
    state = SearchState(posed, candidates_at(posed, NONE, 0.0), NONE, posed.solution({}), 0.0)
    return Neighbourhood(state, 0, state.loads_s(), budget).best()


def packings(lagging: Group, time_s: float, budget: int = 999) -> list[dict[int, int]]:
    posed = problem(lagging)
    unowned = np.nonzero(posed.current_owner[:-1] < 0)[0]
    bounds = SearchBounds(
        all_s=0.0, rest_s=0.0, outliers_s=np.zeros(0), slowest=NONE, slowest_s=np.zeros(0), never=NONE
    )
    packer = DeadlinePacker(posed, candidates_at(posed, unowned, 0.0), unowned, bounds, budget)
    return list(packer.packings(time_s, time_s))


@pytest.mark.parametrize(
    ("weights", "excess", "skip", "picked"),
    [
        ([9.0, 5.0, 3.0, 1.0], 8.0, 0, [0]),
        ([9.0, 5.0, 3.0, 1.0], 4.0, 0, [1]),
        ([9.0, 5.0, 3.0, 1.0], 10.0, 0, [0, 3]),
        ([9.0, 5.0, 3.0, 1.0], 12.5, 0, [0, 1]),
        ([9.0, 5.0, 3.0, 1.0], 8.0, 1, [1, 2]),
        ([9.0, 5.0, 3.0, 1.0], 9.5, 1, None),
        ([9.0, 5.0, 3.0, 1.0], 18.5, 0, None),
        ([9.0], 1.0, 1, None),
        ([], 1.0, 0, None),
    ],
    ids=str,
)
def test_fewest_are_the_heaviest_and_last_the_lightest_that_is_enough(
    weights: list[float], excess: float, skip: int, picked: list[int] | None
) -> None:
    assert fewest_covering(weights, excess, skip=skip) == picked


@pytest.mark.parametrize(("keep_heaviest", "evicted"), [(False, [0]), (True, [1, 2])])
def test_late_member_evicts_just_enough(keep_heaviest: bool, evicted: list[int]) -> None:
    posed = problem(owned([90, 50, 30, 10], [0]))
    deadline = Deadline(posed, candidates_at(posed, NONE, 0.0), NONE, 10.0)

    found = deadline.evictions(np.ones(2, np.bool_), keep_heaviest=keep_heaviest)

    assert sorted(found.tolist()) == evicted


def test_member_evicts_more_than_its_row_of_the_table_holds() -> None:
    posed = problem(owned([10] * 300, []))
    deadline = Deadline(posed, candidates_at(posed, NONE, 0.0), NONE, 10.0)

    found = deadline.evictions(np.ones(2, np.bool_), keep_heaviest=False)

    assert len(set(found.tolist())) == 290


def test_partitions_placed_anew_are_no_candidates() -> None:
    posed = problem(owned([5, 4], [3]))

    candidates = candidates_at(posed, np.array([0]), 0.0)

    assert sorted(candidates.partitions.tolist()) == [1, 2]
    assert 0 not in candidates.table


@pytest.mark.parametrize(
    "n_members", [3, 2**30], ids=["all digits", "so many members that digits are dropped"]
)
def test_partitions_are_sorted_by_member_and_falling_weight(n_members: int) -> None:
    random = np.random.default_rng(3)
    start = random.integers(-1, 3, 500).astype(np.int32)
    weight = random.integers(0, 20, 500) * 1000.0

    ordered = by_member_and_weight(start, weight, n_members)

    expected = sorted(np.nonzero(start >= 0)[0].tolist(), key=lambda p: (start[p], -weight[p], p))
    assert ordered.tolist() == expected


def test_heavy_partition_evicts_lighter_ones() -> None:
    """By 10 s each member drains 100; 90 fits nowhere but where 50 is evicted."""
    members = [
        member("a", "t", owned={"t": [1, 2]}, capacity=10.0),
        member("b", "t", owned={"t": [3]}, capacity=10.0),
    ]
    lagging = group({"t": 4}, *members, lags={"t": [90, 50, 10, 50]})

    found_all = packings(lagging, 10.0)

    assert found_all
    for found in found_all:
        loads = np.bincount([found.get(p, 0 if p < 3 else 1) for p in range(4)], weights=lagging.lag)
        assert loads.max() <= 100


def test_heavy_partition_evicts_more_than_a_row_of_the_table_holds() -> None:
    """2990 leave residual capacity for two partitions of 4 where 300 are."""
    members = [
        member("a", "t", owned={"t": list(range(1, 301))}, capacity=10.0),
        member("b", "t", owned={"t": list(range(301, 601))}, capacity=10.0),
    ]
    lagging = group({"t": 601}, *members, lags={"t": [2990] + [4] * 600})

    found_all = packings(lagging, 300.0)

    assert found_all
    assert all(len(found) == 1 + 298 for found in found_all)


def test_packing_ends_when_its_moves_are_used_up() -> None:
    lagging = owned([60, 40], [50, 30])

    assert packings(lagging, 9.0, budget=1) == []
    assert packings(lagging, 9.0, budget=2) != []


@pytest.mark.parametrize("equal", [True, False], ids=["anybody", "readers"])
def test_best_and_worst_fit_leave_out_excluded_and_full_members(equal: bool) -> None:
    members = [member(f"m{m}", "t" if equal or m < 4 else "u", capacity=10.0) for m in range(5)]
    posed = problem(group({"t": 1, "u": 0 if equal else 1}, *members), count_cap=3)
    residual = np.array([5.0, 9.0, 2.0, 7.0, 1.0])
    found = residual_capacity(
        posed, residual, np.array([0, 3, 0, 0, 0]), np.array([False, False, True, False, False])
    )

    before = [found.best_fit(0, 3.0), found.worst_fit(0, 3.0), found.worst_fit(0, 8.0)]
    found.change(1, weight=-1.0, count=-1)
    found.change(3, weight=3.0, count=1)

    assert before == [0, 3, -1]
    assert [found.best_fit(0, 4.5), found.worst_fit(0, 8.0), found.best_fit(0, 11.0)] == [0, 1, -1]
    assert found.worst_fits(0)[:3] == [1, 0, 3]
    assert found.of(1) == 10.0


def test_move_goes_to_the_member_with_least_to_do() -> None:
    found = step(owned([60, 40], [20], [0]))

    assert found is not None
    assert [(t.partition, t.from_member, t.to_member) for t in found.transfers] == [(0, 0, 2)]


def test_step_stays_within_the_budget() -> None:
    lagging = owned([60, 40], [50, 30])

    assert step(lagging, budget=1) is None
    assert step(lagging, budget=2) is not None


@pytest.mark.parametrize(("price_s", "found"), [(3.9, True), (4.1, False)])
def test_step_is_worth_its_price(price_s: float, found: bool) -> None:
    assert (step(owned([60, 40], []), move_cost_s=price_s) is not None) == found


def test_transfer_away_from_the_owner_is_paid_for() -> None:
    """Nobody owns t-2; it lies with m0 and moves for nothing, t-0 and t-1 would cost a move each."""
    members = [
        member("a", "t", owned={"t": [0]}, capacity=10.0),
        member("b", "t", owned={"t": [1]}, capacity=10.0),
    ]
    posed = problem(group({"t": 3}, *members, lags={"t": [50, 60, 50]}), max_moves=0)
    assert posed.start[2] == 0

    state = SearchState(posed, candidates_at(posed, NONE, 0.0), NONE, posed.solution({}), 0.0)
    found = Neighbourhood(state, 0, np.array([20.0, 6.0]), 0).best()

    assert found is None or found.moves == 0


def test_placement_begins_with_the_heaviest() -> None:
    fresh = group({"t": 3}, member("a", "t", capacity=1.0), member("b", "t", capacity=1.0))
    weight = np.array([2.0, 2.0, 4.0])

    placed = Placement(fresh, np.full(3, -1, np.int32), np.ones(2), weight, 3).place(np.arange(3))

    assert placed is not None
    assert placed.tolist() == [1, 1, 0]


def test_placement_fails_where_only_full_members_read() -> None:
    """Topic t is placed first and half of it on b, so that b reaches the cap before u, which only b reads, is placed."""
    fresh = group({"t": 20, "u": 10}, member("a", "t", capacity=1.0), member("b", "t", "u", capacity=1.0))

    placed = Placement(fresh, np.full(30, -1, np.int32), np.ones(2), np.zeros(30), 15).place(np.arange(30))
    target = lag_sticky(fresh, count_cap=15)

    assert placed is None
    assert validity.check(fresh, target).counts.tolist() == [15, 15]


def test_members_that_never_drain_come_last() -> None:
    """One move: m0 stays hopeless whatever leaves it, m1 does not."""
    posed = problem(owned([100, 300], [900, 900], [0], rates=[[20.0, 0.0], [0.0, 0.0], [0.0]]))
    state = SearchState(posed, candidates_at(posed, NONE, 0.0), NONE, posed.solution({}), 0.0)

    optimum = improve(state, 1, np.array([True, False, False]), {})

    assert optimum.partitions.tolist() == [2]


def test_assignment_has_one_digest_however_it_came_about() -> None:
    posed = problem(owned([100, 300], [900], [0]))
    table = candidates_at(posed, NONE, 0.0)
    there, elsewhere = (SearchState(posed, table, NONE, posed.solution({}), 0.0) for _ in range(2))

    there.apply([Transfer(0, 0, 1), Transfer(1, 0, 2)], 2)
    elsewhere.apply([Transfer(1, 0, 1)], 1)
    elsewhere.apply([Transfer(1, 1, 2), Transfer(0, 0, 1)], 1)
    moved_at_once = SearchState(posed, table, NONE, posed.solution({0: 1, 1: 2}), 0.0)

    assert there.digest == elsewhere.digest == moved_at_once.digest != 0
    there.apply([Transfer(0, 1, 0), Transfer(1, 2, 0)], -2)
    assert there.digest == 0


def test_local_search_that_meets_the_way_of_an_earlier_one_ends_where_that_did() -> None:
    posed = problem(owned([500, 400, 300, 200], [10], [10]))
    table, nobody = candidates_at(posed, NONE, 0.0), np.zeros(3, np.bool_)
    optima: dict[Visited, Solution] = {}
    whole = SearchState(posed, table, NONE, posed.solution({}), 0.0)
    first = improve(whole, 9, nobody, optima)
    half_way = Neighbourhood(
        start := SearchState(posed, table, NONE, posed.solution({}), 0.0), 0, start.loads_s(), 9
    ).best()
    assert half_way is not None
    start.apply(half_way.transfers, half_way.moves)

    assert improve(start, 9, nobody, optima) is first
    assert improve(start, 9, ~nobody, optima) is not first


def test_changes_that_lead_to_one_assignment_have_one_key() -> None:
    posed = problem(owned([500, 400], [10], [10]))

    once, again, other = (posed.changed(one) for one in ({0: 1}, {0: 1, 1: 0}, {1: 2, 0: 1}))

    assert once.key == again.key != other.key


def test_solutions_that_are_evaluated_together_have_the_figures_of_each_alone() -> None:
    posed = problem(owned([500, 400, 30], [10, 7], [10], []))
    found: list[dict[int, int]] = [{}, {0: 1}, {1: 2, 0: 3}, {3: 0, 4: 2, 2: 3}]

    together = posed.evaluated([posed.changed(one) for one in found])

    assert posed.evaluated([]) == []
    for solution, changes in zip(together, found, strict=True):
        assert solution.changes() == changes
        alone = posed.solution(changes)
        assert (solution.moves, solution.makespan_s, solution.lag_area) == (
            alone.moves,
            alone.makespan_s,
            alone.lag_area,
        )
        for name in ("lag", "rate", "loads_s"):
            np.testing.assert_array_equal(getattr(solution, name), getattr(alone, name))


def test_plan_with_less_lag_that_is_a_little_later_is_not_taken() -> None:
    """Times within a thousandth count as the same, but a plan is never later than the start."""
    lagging = owned([10_000], [4], [900, 900], [0])
    posed = problem(lagging)
    search = Search(posed, Work.of(lagging, posed.capacity), 1000.0)
    later, earlier = posed.solution({1: 0, 2: 3}), posed.solution({2: 3})

    assert posed.is_better(later, search.start)
    assert search._better(later, search.start, 9) is search.start
    assert search._better(earlier, search.start, 9) is earlier


def test_move_that_the_search_made_but_that_buys_less_than_its_price_is_taken_back() -> None:
    lagging = owned([], [310, 470], [110, 460, 420])

    dear = lag_sticky(lagging, max_moves=4, **{**FREE, "move_cost_s": 5.0})
    cheap = lag_sticky(lagging, max_moves=4, **{**FREE, "move_cost_s": 4.0})

    validity.check(lagging, dear)
    validity.check(lagging, cheap)
    assert (moved(lagging, dear), drain_s(lagging, dear.member)) == (1, 78)
    assert (moved(lagging, cheap), drain_s(lagging, cheap.member)) == (2, 73)


def test_second_solve_makes_the_answer_stable() -> None:
    """Found among random groups: after the first solve the search, asked again, finds another move."""
    lagging = owned([], [100, 150, 20, 10, 50], [50, 0], rates=[[], [0.0, 0.0, 4.0, 0.0, 0.0], [2.0, 2.0]])
    options = {**FREE, "max_moves": 7, "move_cost_s": 5.0, "floor_s": 20.0}
    target = lag_sticky(lagging, **options)
    validity.check(lagging, target)
    applied = [[pid for pid in range(7) if target.member[pid] == m] for m in range(3)]
    members = [member(f"m{m}", "t", owned={"t": mine}, capacity=10.0) for m, mine in enumerate(applied)]
    settled = group({"t": 7}, *members, lags={"t": lagging.lag.tolist()}, rates={"t": lagging.rate.tolist()})

    again = lag_sticky(settled, **options)

    validity.check(settled, again)
    assert moved(settled, again) == 0


def test_one_move_more_may_be_worse_unless_monotone_is_asked_for() -> None:
    """Found among random groups."""
    lagging = owned(
        [650, 370, 450, 970, 190],
        [630, 420, 670, 750, 330],
        [660, 670, 450, 130],
        [610, 60, 870, 840, 830, 10, 960],
        [960, 580, 820, 760],
        rates=[
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.5, 1.5, 1.0, 0.5, 0.5],
            [1.0, 1.0, 0.0, 1.0],
            [0.0, 0.5, 0.5, 1.5, 1.0, 0.0, 0.5],
            [0.0, 0.0, 0.5, 1.5],
        ],
    )

    def times(**options: object) -> list[float]:
        targets = [lag_sticky(lagging, max_moves=n, **FREE, **options) for n in (4, 5)]
        for target in targets:
            validity.check(lagging, target)
        return [drain_s(lagging, target.member) or 0.0 for target in targets]

    four, five = times(monotone="yes")
    assert five <= four
    four, five = times()
    assert five > four


def test_other_strategies_are_the_fallback_of_a_search_that_finds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Search, "best", lambda self, _: self.start)
    lagging = owned([90, 80, 70], [1], [1])

    target = lag_sticky(lagging, max_moves=5, **FREE)

    validity.check(lagging, target)
    assert drain_s(lagging, target.member) == 9
    assert moved(lagging, lag_sticky(lagging, max_moves=4, **FREE)) == 0


def test_member_slower_than_a_float_can_tell_beside_a_fast_one_still_counts() -> None:
    members = [
        member("fast", "t", owned={"t": [0]}, capacity=1e17),
        member("slow", "t", owned={"t": [1, 2]}, capacity=1.0),
    ]
    lagging = group({"t": 3}, *members, lags={"t": [10**17, 60, 2]})

    target = lag_sticky(lagging, **FREE)

    validity.check(lagging, target)
    assert drain_s(lagging, target.member) == pytest.approx(1.0)
