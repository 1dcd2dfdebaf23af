"""What keeps a plan back, and what lets it through."""

from dataclasses import replace
from typing import Any

import pytest

from assignor.protocol.instants import format_instant
from pipeline.planning.facts import AckFacts, Rules
from pipeline.planning.guards import Proposal, guard_against, is_over
from pipeline.planning.state import FRESH
from tests.support.planning.facts import NO_GUARDS, NOW_MS, RULES
from tests.support.planning.plan_walk import Walk


def walk(**guards: object) -> Walk:
    """Lag-aware moves partition 1 to b and partition 3 to a."""
    return Walk(
        held={"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, lags=[900, 800, 10, 0], rules=guarded(**guards)
    )


def guarded(**guards: object) -> Rules:
    return replace(RULES, guards=replace(NO_GUARDS, **guards))  # type: ignore[arg-type]  # the tests know their types


@pytest.mark.parametrize(
    ("guards", "reason"),
    [
        ({"settle_ms": 120_000}, "settle: generation 4 is 0 s old, less than settle_s = 120 s"),
        ({"min_lag": 1711}, "lag: the group's lag of 1710 records is below min_lag = 1711"),
        (
            {"min_lag_ms": 3_601_000},
            "lag: no partition is more than 3600 s behind or will be, less than min_lag_s = 3601 s",
        ),
        ({"min_improvement": 0.6}, "improvement: the plan gains less than min_improvement = 60%"),
        ({"confirmations": 2}, "confirmations: 1 of 2 evaluations in a row found that a plan is needed"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_plan_is_held_back_by_name(guards: dict[str, object], reason: str) -> None:
    decision = walk(**guards).decide()

    assert (decision.decided, decision.record) == ("unchanged", None)
    assert decision.reason == f"held back by {reason}"
    assert len(decision.moves) == 2


def test_lag_of_unknown_age_is_not_old() -> None:
    group = walk(min_lag_ms=1000)
    group.lag_age_s = float("nan")

    assert "is unknown" in (group.decide().reason or "")


def test_plan_that_cannot_be_made_in_steps_is_held_back_by_its_moves() -> None:
    """Partitions of one number change hands together, and forty topics have a number 0."""
    proposal = Proposal(moves=40, n_partitions=80, has_budget=False, gain=0.5, lag=9, lag_s=9.0)
    guards = replace(NO_GUARDS, moves_share=0.1)

    assert guard_against(proposal, guards, replace(FRESH, confirmations=1), now_ms=NOW_MS) == (
        "moves: the plan moves 40 of 80 partitions; 30 may move (moves_share = 0.1)"
    )


def test_share_of_moves_does_not_limit_plans_that_are_whole_targets() -> None:
    proposal = Proposal(
        moves=600, n_partitions=800, has_budget=False, moves_whole=True, gain=0.5, lag=9, lag_s=9.0
    )
    guards = replace(NO_GUARDS, moves_share=0.1)

    assert guard_against(proposal, guards, replace(FRESH, confirmations=1), now_ms=NOW_MS) is None


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"settle_ms": NOW_MS + 2_001}, "settle:"),
        ({"min_lag": 10}, "lag:"),
        ({"min_lag_ms": 60_000}, "lag:"),
        ({"min_improvement": 0.9}, "improvement:"),
        ({"confirmations": 3}, "confirmations:"),
    ],
    ids=str,
)
def test_every_other_guard_limits_plans_that_are_whole_targets(limits: dict[str, Any], reason: str) -> None:
    proposal = Proposal(
        moves=600, n_partitions=800, has_budget=False, moves_whole=True, gain=0.5, lag=9, lag_s=9.0
    )
    guards = replace(NO_GUARDS, **limits)

    against = guard_against(proposal, guards, replace(FRESH, confirmations=1), now_ms=NOW_MS)

    assert (against or "").startswith(reason)


def test_plan_of_kip_169_pauses_after_a_plan_as_any_other() -> None:
    proposal = Proposal(
        moves=600, n_partitions=800, has_budget=False, moves_whole=True, gain=0.5, lag=9, lag_s=9.0
    )
    state = replace(FRESH, confirmations=1, cooldown_until_ms=NOW_MS + 1)

    assert (guard_against(proposal, NO_GUARDS, state, now_ms=NOW_MS) or "").startswith("cooldown:")


@pytest.mark.parametrize(
    ("left_ms", "of_ms", "over"),
    [
        (600, 120_000, True),
        (2_000, 600_000, True),
        (2_001, 600_000, False),
        (250, 5_000, True),
        (251, 5_000, False),
        (1, 0, False),
        (0, 0, True),
    ],
)
def test_wait_is_over_for_an_evaluation_that_begins_a_moment_early(
    left_ms: int, of_ms: int, over: bool
) -> None:
    assert is_over(left_ms, of_ms=of_ms) is over


def test_guards_wait_no_further_evaluation_for_tenths_of_a_second() -> None:
    proposal = Proposal(moves=1, n_partitions=8, has_budget=True, gain=0.5, lag=9, lag_s=9.0)
    guards = replace(NO_GUARDS, settle_ms=120_000, cooldown_ms=600_000)
    state = replace(FRESH, since_ms=NOW_MS - 119_400, confirmations=1, cooldown_until_ms=NOW_MS + 600)

    assert guard_against(proposal, guards, state, now_ms=NOW_MS) is None
    assert (guard_against(proposal, guards, state, now_ms=NOW_MS - 2_000) or "").startswith("settle:")


def test_strategy_without_a_budget_publishes_for_a_small_group() -> None:
    group = walk(moves_share=0.1)
    group.held = {"a": {"t": tuple(range(30))}, "b": {"t": ()}}
    group.lags = [9] * 30

    decision = group.decide()

    assert (decision.decided, len(decision.moves)) == ("publish", 15)


def test_partition_that_no_member_can_drain_does_not_hide_what_the_others_gain() -> None:
    group = walk(min_improvement=0.1)
    group.rules = replace(group.rules, strategy="lag-sticky", options={"max_moves": 4})
    group.held = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}, "c": {"t": (4,)}}
    group.lags = [9_000_000, 500, 400, 300, 0]
    group.drain_rates = [10.0, 0.3, 0.3, 0.4, 0.9]

    decision = group.decide()

    assert decision.decided == "publish"
    assert {(move.from_member, move.to_member) for move in decision.moves} == {("b", "c")}


def test_group_that_is_hours_behind_is_helped_however_few_its_records_are() -> None:
    group = walk(min_lag_ms=60_000)
    group.lag_age_s = float("nan")
    group.lags, group.arrival_rates = [900, 800, 10, 0], [5.0, 5.0, 5.0, 5.0]

    assert group.decide().decided == "publish"


def test_few_seconds_of_arrivals_are_no_lag_whatever_their_number() -> None:
    group = walk(min_lag_ms=60_000)
    group.lag_age_s = float("nan")
    group.lags, group.arrival_rates = [90_000, 80_000, 10, 0], [5_000.0] * 4

    assert "18 s behind" in (group.decide().reason or "")


@pytest.mark.parametrize(("drained", "decided"), [(6.0, "publish"), (30.0, "unchanged")])
def test_member_that_loses_ground_is_helped_before_its_records_are_old_and_one_that_catches_up_is_not(
    drained: float, decided: str
) -> None:
    group = walk(min_lag_ms=60_000)
    group.lag_age_s = 20.0
    group.lags, group.arrival_rates = [500, 400, 0, 0], [10.0, 10.0, 1.0, 1.0]
    group.drain_rates = [drained, drained, 1.0, 1.0]

    assert group.decide().decided == decided


def test_settled_generation_lets_the_plan_through() -> None:
    group = walk(settle_ms=120_000)

    assert [group.decide(after_s=s).decided for s in (0, 117, 3)] == ["unchanged", "unchanged", "publish"]


def test_member_that_has_not_answered_when_the_group_has_settled_is_planned_around() -> None:
    group = walk(settle_ms=60_000)
    group.decide()
    epoch = group.decide(after_s=60).epoch
    group.acks = (AckFacts(kind="accepted", member_id="a", epoch=epoch or 0),)

    assert [set(group.decide(after_s=s).state.silent_since_ms) for s in (59, 1)] == [set(), {"b"}]


def test_new_generation_has_to_settle_anew() -> None:
    group = walk(settle_ms=120_000)
    group.decide()
    group.generation += 1

    assert group.decide(after_s=120).decided == "unchanged"


def test_second_look_at_the_same_group_confirms() -> None:
    group = walk(confirmations=2)

    assert [group.decide(after_s=60).decided for _ in range(2)] == ["unchanged", "publish"]


@pytest.mark.parametrize(("pauses_s", "looks"), [((600,), 2), ((601, 60), 3)])
def test_look_of_before_a_long_pause_confirms_nothing(pauses_s: tuple[int, ...], looks: int) -> None:
    group = walk(confirmations=2)

    decided = [group.decide(after_s=pause_s).decided for pause_s in (0, *pauses_s)]

    assert decided == ["unchanged"] * (looks - 1) + ["publish"]


def test_another_state_of_the_group_is_confirmed_anew() -> None:
    group = walk(confirmations=2)
    group.decide()
    group.generation += 1

    assert group.decide(after_s=60).decided == "unchanged"


def test_pause_holds_the_next_plan_back() -> None:
    group = walk(cooldown_ms=1_200_000, cooldown_max_ms=3_000_000)
    group.apply(group.decide())
    group.lags = [0, 800, 900, 10]

    held = group.decide(after_s=600)

    assert held.reason == "held back by cooldown: 600 s of the 1200 s after the last plan remain"


@pytest.mark.parametrize(("after_s", "moved"), [(1199, set()), (1200, {3})], ids=["resting", "rested"])
def test_partition_that_moved_lately_stays(after_s: float, moved: set[int]) -> None:
    group = walk(partition_rest_ms=1_200_000)
    group.apply(group.decide())
    group.lags = [0, 800, 900, 10]

    assert {move.partition for move in group.decide(after_s=after_s).moves} & {1, 3} == moved


def test_partition_that_moved_often_enough_stays_for_the_day() -> None:
    group = walk(partition_moves_per_day=1)
    group.apply(group.decide())
    group.lags = [0, 800, 900, 10]

    assert {move.partition for move in group.decide(after_s=80_000).moves} & {1, 3} == set()
    assert {move.partition for move in group.decide(after_s=6_400).moves} & {1, 3} == {3}


@pytest.mark.parametrize(
    ("pinned", "kept"),
    [({"t": (1,)}, {1}), ({"t": ()}, {0, 1, 2, 3}), ({"u": ()}, {0, 2})],
    ids=["partition", "topic", "another topic"],
)
def test_pinned_partitions_stay(pinned: dict[str, tuple[int, ...]], kept: set[int]) -> None:
    group = walk()
    group.order(pinned=pinned)

    assert {move.partition for move in group.decide().moves} & kept == set()


def test_topic_pinned_in_the_configuration_stays() -> None:
    assert walk(pin=("x|t",)).decide().moves == ()


def test_time_to_drain_counts_where_it_is_known_and_not_the_lag_of_the_busiest() -> None:
    """Both members drain in 90 s; lag-aware would halve the fast one's lag and let the slow one take ten times as long."""
    group = walk(min_improvement=0.1)
    group.lags = [900, 900, 90, 90]
    group.drain_rates = [10.0, 10.0, 1.0, 1.0]

    assert "held back by improvement" in (group.decide().reason or "")


def test_partition_that_nobody_reads_is_given_out_whatever_it_improves() -> None:
    group = walk(min_improvement=0.99)
    group.held = {"a": {"t": (0, 1)}, "b": {"t": (2,)}}

    assert group.decide().decided == "publish"


def test_trigger_skips_the_guards_once() -> None:
    group = walk(settle_ms=10**9, min_lag=10**9)
    group.order(triggered_at_ms=group.now_ms)

    first = group.decide(after_s=5)
    group.apply(first)
    group.lags = [0, 800, 900, 10]
    second = group.decide(after_s=60)

    assert (first.decided, second.decided) == ("publish", "unchanged")


def test_trigger_that_waits_for_the_group_is_kept_and_an_old_one_is_not() -> None:
    group = walk(settle_ms=10**9)
    group.order(triggered_at_ms=group.now_ms)

    assert group.decide(after_s=599).decided == "publish"
    group.state, group.published = type(group.state)(), None
    assert group.decide(after_s=1).decided == "unchanged"


@pytest.mark.parametrize("ahead_s", [-86_400, -600, 600, 86_400])
def test_trigger_of_a_clock_far_from_this_one_is_ignored_with_the_reason_once(ahead_s: int) -> None:
    group = walk(settle_ms=10**9)
    at_ms = group.now_ms + ahead_s * 1000
    group.order(triggered_at_ms=at_ms)

    first = group.decide()
    later = [group.decide(after_s=60) for _ in range(12)]

    assert first.decided == "unchanged"
    assert (first.reason or "").startswith("held back by settle: ")
    assert (first.reason or "").endswith(
        f"; trigger of {format_instant(at_ms)} ignored: more than ten minutes from now by this host's clock; trigger again"
    )
    assert all(one.decided == "unchanged" and "trigger" not in (one.reason or "") for one in later)


@pytest.mark.parametrize("ahead_s", [-599, 599])
def test_trigger_of_a_clock_that_differs_a_little_is_obeyed_after_one_of_a_clock_that_was_ahead(
    ahead_s: int,
) -> None:
    group = walk(settle_ms=10**9)
    group.order(triggered_at_ms=group.now_ms + 86_400_000)
    group.decide()
    group.order(triggered_at_ms=group.now_ms + ahead_s * 1000)

    assert group.decide(after_s=0).decided == "publish"


def test_trigger_of_a_clock_that_is_ahead_does_not_wait_for_hours_until_the_group_can_be_planned() -> None:
    group = walk(settle_ms=10**9)
    group.unanswered = (0, 1, 2, 3)
    group.order(triggered_at_ms=group.now_ms + 3_600_000)
    group.decide()
    group.unanswered = ()

    assert group.decide(after_s=60).decided == "unchanged"
    assert group.decide(after_s=3_600).decided == "unchanged"


def test_pause_abstains_with_who_and_why() -> None:
    group = walk()
    group.order(paused=True, pause_reason="deploy")

    decision = group.decide()

    assert decision.decided == "abstain"
    assert decision.reason == "paused by eva@desk: deploy; `lagwise resume g` allows plans again"


def test_pause_withdraws_a_plan_that_is_out_once() -> None:
    group = walk()
    group.decide()
    group.order(paused=True, pause_reason="deploy")

    taken_back, quiet = group.decide(after_s=5), group.decide(after_s=5)
    group.order(paused=False)
    after = group.decide(after_s=5)

    assert (taken_back.decided, taken_back.epoch, taken_back.record) == ("publish", 2, None)
    assert (taken_back.reason or "").startswith("withdrawn: paused by eva@desk: deploy")
    assert taken_back.plan is not None
    assert taken_back.plan.status == "superseded"
    assert quiet.decided == "abstain"
    assert (after.decided, after.epoch) == ("publish", 3)


def test_dry_run_goes_through_the_same_guards() -> None:
    group = walk(confirmations=2)
    group.rules = replace(group.rules, dry_run=True)

    assert [group.decide(after_s=60).decided for _ in range(2)] == ["unchanged", "dry_run"]


def test_lag_sticky_stays_below_its_share_of_moves() -> None:
    group = walk(moves_share=0.1)
    group.rules = replace(group.rules, strategy="lag-sticky", options={"floor_s": 0, "move_cost_s": 0})
    group.held = {"a": {"t": tuple(range(20))}, "b": {"t": tuple(range(20, 40))}}
    group.lags = [10_000 * (1 + n) for n in range(20)] + [0] * 20

    decision = group.decide()

    assert decision.decided == "publish"
    assert 0 < len(decision.moves) <= 4


def test_plan_that_its_members_have_refused_goes_through_the_guards_again() -> None:
    group = walk(cooldown_ms=3_600_000, cooldown_max_ms=7_200_000)
    group.decide()
    group.acks = (AckFacts(kind="refused", member_id="b", epoch=1, why="static"),)

    young = group.decide(after_s=60)
    old = group.decide(after_s=RULES.valid_for_ms / 1000)
    rested = group.decide(after_s=3600)

    assert young.reason == "plan epoch 1 is still current"
    assert (old.reason or "").startswith("held back by cooldown: ")
    assert (rested.decided, rested.epoch) == ("publish", 2)
