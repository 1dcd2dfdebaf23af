"""Partitions go back to where they were before plans, once nothing has been behind for five minutes."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from assignor.protocol.commands import Approval
from assignor.protocol.ranges import format_ranges, parse_ranges
from pipeline.planning import decide, reasons
from pipeline.planning.facts import AckFacts
from pipeline.planning.problem.evidence import Evidence, EvidenceAsked
from pipeline.planning.problem.group import Problem, posed
from pipeline.planning.state import GroupState
from pipeline.planning.values import Decision
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import Walk

BEFORE = {"a": {"t": (0, 1, 2)}, "b": {"t": (3, 4, 5)}, "c": {"t": (6, 7, 8)}}
BURST = [9_000, 9_000, 9_000, 0, 0, 0, 0, 0, 0]
CALM = [0] * 9
_GUARDS = replace(NO_GUARDS, moves_share=0.5, min_improvement=0.1)


def after_the_burst(*, rebalanced_s: int | None = None, **rules: object) -> Walk:
    """What a held was behind, and the others read it with a; nothing is behind any more.

    Args:
        rebalanced_s: How long before the burst the group had rebalanced; by default long before.
        rules: Of the group.
    """
    made = Walk(
        held=BEFORE,
        lags=[*BURST],
        arrival_rates=[30.0] * 3 + [1.0] * 6,
        drain_rates=[100.0 / 3] * 3 + [100.0 / 3] * 6,
        rules=replace(RULES, strategy="lag-sticky", guards=_GUARDS, **rules),  # type: ignore[arg-type]  # as given
    )
    if rebalanced_s is not None:
        since_ms = made.now_ms - rebalanced_s * 1000
        made.state = replace(made.state, generation=4, since_ms=since_ms, rebalanced_at_ms=since_ms)
    plan = made.decide()
    assert plan.decided == "publish", plan.reason
    assert plan.moves
    made.apply(plan)
    made.lags, made.arrival_rates = [*CALM], [1.0] * 9
    made.decide(after_s=60)
    return made


def moved(decision: Decision) -> dict[int, str | None]:
    return {move.partition: move.to_member for move in decision.moves}


def later(group: Walk, *, minutes: int = 5) -> Decision:
    for _ in range(minutes):
        decision = group.decide(after_s=60)
    return decision


def returns(group: Walk, *, minutes: int = 10) -> bool:
    """Whether anything is given back, or proposed to be, in that time."""
    return any(
        str(group.decide(after_s=60).reason).startswith("gives ") or group.state.waiting
        for _ in range(minutes)
    )


@pytest.mark.parametrize(("price_s", "reason"), [(0.0, None), (60.0, "moves are expensive")])
def test_partitions_return_before_it_is_calm_where_moves_are_dear(price_s: float, reason: str | None) -> None:
    group = after_the_burst()
    group.state = replace(group.state, move_price_s=price_s, priced_at_ms=group.now_ms)
    group.lags = [*CALM[:-1], 400]

    back = group.decide(after_s=60)

    assert not group.state.calm_since_ms
    assert reason is None or str(back.reason).endswith(reason)
    assert bool(moved(back)) == (reason is not None)
    assert back.state.passed_ms == 8 * price_s * 1000


def test_partitions_return_although_all_speeds_were_shown_with_cold_caches() -> None:
    """Without any speed no capacity would be known, and nothing would ever be better."""
    group = after_the_burst(rebalanced_s=180)
    group.drain_rates = [1.0] * 9
    group.state = replace(group.state, move_price_s=300.0, priced_at_ms=group.now_ms)

    assert str(group.decide(after_s=60).reason).endswith("moves are expensive")


def test_partitions_return_after_five_calm_minutes_and_not_before() -> None:
    group = after_the_burst()
    assert later(group, minutes=4).decided == "unchanged"

    back = later(group, minutes=1)

    assert back.decided == "publish"
    assert set(moved(back).values()) == {"a"}
    assert str(back.reason).startswith(
        f"gives {len(back.moves)} partition(s) back to the members that had them"
    )
    assert group.state.plan is not None
    # Nobody is behind, and still it is no plan that nothing calls for.
    assert not group.state.plan.is_needless
    group.apply(back)
    assert group.held == BEFORE
    assert later(group, minutes=20).decided == "unchanged"


@pytest.mark.parametrize(("ended_s", "decided"), [(3_599, "unchanged"), (3_600, "publish")])
def test_way_back_that_ended_half_way_goes_on_an_hour_later(ended_s: int, decided: str) -> None:
    group = after_the_burst()
    later(group, minutes=4)
    assert group.state.plan is not None
    partly = replace(group.state.plan, status="partly", status_at_ms=group.now_ms + 60_000 - ended_s * 1_000)
    group.state = replace(group.state, plan=partly)

    assert later(group, minutes=1).decided == decided


def test_lag_begins_the_five_minutes_anew() -> None:
    group = after_the_burst()
    later(group, minutes=3)
    group.lags = [500] * 9
    group.decide(after_s=60)
    group.lags = [*CALM]

    assert not returns(group, minutes=4)
    assert returns(group, minutes=2)


def test_time_in_which_a_log_end_is_old_is_not_known_to_be_calm() -> None:
    group = after_the_burst()
    group.unanswered = (8,)
    assert not returns(group, minutes=10)

    group.unanswered = ()
    assert not returns(group, minutes=5)
    assert returns(group, minutes=1)


def test_time_in_which_nobody_looked_is_not_known_to_be_calm() -> None:
    group = after_the_burst()
    group.now_ms += 3_600_000

    assert not returns(group, minutes=5)
    assert returns(group, minutes=1)


def test_partitions_stay_where_what_arrives_would_be_too_much_for_who_had_them() -> None:
    group = after_the_burst()
    group.arrival_rates = [40.0] * 3 + [1.0] * 6

    assert not returns(group)


def test_member_that_has_come_since_keeps_everything_where_it_is() -> None:
    group = after_the_burst()
    group.held = {**group.held, "d": {}}
    group.generation += 1

    assert not returns(group)


def test_what_the_groups_own_assignor_has_given_to_others_since_stays_there() -> None:
    group = after_the_burst()
    # Given back, 0 and 2 would be spread more evenly.
    group.held = {"a": {"t": (3,)}, "b": {"t": (1, 2, 4, 5)}, "c": {"t": (0, 6, 7, 8)}}
    group.generation += 1

    assert not returns(group)


def test_pinned_partition_does_not_return() -> None:
    group = after_the_burst()
    group.order(pinned={"t": ()})

    assert not returns(group)


@pytest.mark.parametrize("standing", ["b", "c", "bc"])
def test_member_that_stands_still_gives_nothing_back(standing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    group = after_the_burst()

    def in_outage(
        *given: Any, **times: int
    ) -> Generator[EvidenceAsked, Evidence, tuple[Problem, GroupState]]:
        problem, state = yield from posed(*given, **times)
        return replace(problem, standing=frozenset(standing)), state

    monkeypatch.setattr(decide, "posed", in_outage)
    givers = {str(move.from_member) for _ in range(10) for move in group.decide(after_s=60).moves}

    assert givers == {"b", "c"} - set(standing)


def test_nothing_is_given_back_where_plans_are_not_published() -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, dry_run=True)

    assert not returns(group)


@pytest.mark.parametrize("strategy", ["sticky", "range"])
def test_nothing_is_given_back_by_strategies_that_do_not_go_by_lag(strategy: str) -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, strategy=strategy)

    assert not returns(group)


def test_return_waits_for_an_approval_where_plans_do() -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, needs_approval=True)

    decision = later(group)

    assert decision.decided != "publish"
    assert group.state.waiting is not None
    assert moved(decision)


def test_return_that_waits_is_nothing_to_approve_in_the_next_burst() -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, needs_approval=True)
    later(group)
    waiting = group.state.waiting
    assert waiting is not None
    group.lags = [*BURST]

    group.order(
        approval=Approval(
            target_hash=waiting.target_hash, base_hash=waiting.base_hash, at_ms=group.now_ms + 500
        )
    )
    decision = group.decide(after_s=60)

    assert decision.decided != "publish"
    assert group.state.waiting is None or group.state.waiting.target != waiting.target
    assert reasons.CALM_NO_MORE in str(decision.reason)


def test_group_that_was_lopsided_before_its_plans_is_not_made_so_again() -> None:
    group = after_the_burst()
    # As if a had held everything.
    whole = {"a": {"t": "0-8"}}
    group.state = replace(group.state, home=whole)

    assert not returns(group)


def test_members_that_refuse_it_are_not_asked_again_and_again() -> None:
    group = after_the_burst()
    back = later(group)
    assert back.decided == "publish"
    epoch = back.epoch or 0
    group.acks = (AckFacts(kind="refused", member_id="b", epoch=epoch, why="migration"),)

    assert not returns(group, minutes=30)


def test_partitions_that_rest_after_a_plan_that_hurt_stay() -> None:
    group = after_the_burst()
    until_ms = group.now_ms + 3_600_000
    group.state = replace(group.state, rests_until_ms={f"t:{number}": until_ms for number in range(9)})

    assert not returns(group)


def test_nothing_returns_while_a_partition_is_between_two_members() -> None:
    group = after_the_burst()
    later(group, minutes=4)
    held = group.held
    group.held = {**held, "a": {"t": held["a"]["t"][1:]}}

    decision = group.decide(after_s=60)

    assert decision.decided != "abstain", decision.reason
    group.held = held
    assert returns(group)


def test_nothing_returns_to_a_member_that_does_not_subscribe_any_more() -> None:
    group = after_the_burst()
    group.leavers = frozenset({"a"})
    of_both = (*group.held["a"]["t"], *group.held["b"]["t"])
    group.held = {"a": {}, "b": {"t": of_both}, "c": group.held["c"]}
    plan = group.state.plan
    assert plan is not None
    target = {name: {t: format_ranges(of) for t, of in topics.items()} for name, topics in group.held.items()}
    group.state = replace(group.state, plan=replace(plan, target=target))

    for _ in range(10):
        assert group.decide(after_s=60).decided != "abstain"


@pytest.mark.parametrize(("price_s", "decided"), [(0.0, "publish"), (60.0, "unchanged")])
def test_way_back_that_hurt_is_taken_back_unless_moves_are_expensive(price_s: float, decided: str) -> None:
    group = after_the_burst()
    back = later(group)
    group.apply(back)
    group.decide(after_s=60)
    plan = group.state.plan
    assert plan is not None
    group.state = replace(
        group.state,
        plan=replace(plan, effect="hurt", effect_at_ms=group.now_ms, effect_why="it lags"),
        move_price_s=price_s,
        priced_at_ms=group.now_ms,
    )

    undone = group.decide(after_s=60)

    assert undone.decided == decided, undone.reason
    assert decided == "unchanged" or set(moved(undone)) == set(moved(back))
    assert decided == "unchanged" or group.state.home == {}


def test_what_the_group_has_assigned_anew_since_is_remembered_as_where_it_belongs() -> None:
    """Partition 0 was a's before plans; the group's own assignor has given it to c, and a plan moves it to b."""
    group = after_the_burst()
    group.held = {"a": {"t": (1, 2)}, "b": {"t": (3, 4, 5)}, "c": {"t": (0, 6, 7, 8)}}
    group.generation += 1
    group.decide(after_s=60)
    group.lags = [9_000, 0, 0, 0, 0, 0, 9_000, 9_000, 9_000]
    group.arrival_rates = [30.0, 1.0, 1.0, 1.0, 1.0, 1.0, 30.0, 30.0, 30.0]

    plan = group.decide(after_s=600)

    assert plan.decided == "publish", plan.reason
    assert moved(plan)
    home = {p: name for name, of in group.state.home.items() for p in parse_ranges(of["t"], at_most=99)}
    assert home == {move.partition: move.from_member for move in plan.moves}


@pytest.mark.parametrize("most", [0, 1])
def test_return_makes_no_more_moves_than_the_operator_allows(most: int) -> None:
    group = after_the_burst()
    group.rules = replace(group.rules, options={"max_moves": most})

    back = later(group)

    assert len(back.moves) <= most


def test_probation_holds_it_back() -> None:
    group = after_the_burst()
    group.state = replace(group.state, probation_until_ms=group.now_ms + 3_600_000, hurts=1)

    assert not returns(group)


@pytest.mark.parametrize(("unseen_s", "is_calm"), [(900, True), (899, False)])
def test_time_between_evaluations_is_calm_up_to_the_longest_one_that_counts_as_seen(
    unseen_s: int, *, is_calm: bool
) -> None:
    group = after_the_burst(unseen_ms=unseen_s * 1000)

    given_back = [str(group.decide(after_s=900).reason).startswith("gives ") for _ in range(3)]

    assert any(given_back) is is_calm
