"""What a plan has drained, and what a decision leaves for the next one."""

from dataclasses import replace

import pytest

from pipeline.planning.facts import AckFacts
from pipeline.planning.state import FRESH, PlanState
from tests.support.planning.alone import decide
from tests.support.planning.facts import NO_GUARDS, NOW_MS, RULES, committing, group
from tests.support.planning.plan_walk import Walk, out, walk


def plan_of(walked: Walk) -> PlanState:
    assert walked.state.plan is not None
    return walked.state.plan


@pytest.mark.parametrize(("status", "after_s"), [("refused", 60), ("expired", RULES.valid_for_ms / 1000)])
def test_plan_that_was_not_applied_has_drained_nothing(status: str, after_s: float) -> None:
    group = walk()
    group.decide()
    group.lags = [0, 0, 0, 0]
    if status == "refused":
        group.acks = (AckFacts(kind="refused", member_id="b", epoch=1, why="static"),)

    plan = group.decide(after_s=after_s).plan

    assert plan is not None
    assert (plan.status, plan.drained_s) == (status, None)


@pytest.mark.parametrize(("left", "drained_s"), [(85, 60), (86, None)])
def test_backlog_is_gone_when_a_twentieth_of_it_is_left(left: int, drained_s: float | None) -> None:
    group = walk()
    group.apply(group.decide())
    group.lags = [left, 0, 0, 0]
    group.decide(after_s=60)

    assert plan_of(group).drained_s == drained_s


@pytest.mark.parametrize(("left", "drained_s"), [(2_000, 60), (2_001, None)])
def test_what_clocks_may_make_of_nothing_is_no_backlog(left: int, drained_s: float | None) -> None:
    """Five seconds of what arrives in all that the plan set out to drain."""
    group = walk()
    group.lags = [9_000, 8_000, 600, 0]
    group.arrival_rates = [100.0] * 4
    group.apply(group.decide())
    group.lags = [left, 0, 0, 0]
    group.decide(after_s=60)

    assert plan_of(group).drained_s == drained_s


SHIFTED = {"a": {"t": (0, 1)}, "b": {"t": (2,)}, "c": {"t": (3,)}}


def shifted(*, rest_is_behind: int) -> Walk:
    """Partition 1 has been taken from a and given to b; c, with partition 3, is behind by so much and in no plan."""
    rules = replace(RULES, guards=replace(NO_GUARDS, cooldown_ms=600_000))
    group = Walk(held=SHIFTED, lags=[900, 800, 0, rest_is_behind], rules=rules)
    group.order(pinned={"t": (0, 2, 3)})
    first = group.decide()
    assert [(move.from_member, move.to_member) for move in first.moves] == [("a", "b")]
    group.apply(first)
    return group


def test_plan_has_drained_when_what_it_set_out_to_drain_has_wherever_that_is_now() -> None:
    group = shifted(rest_is_behind=700)
    group.lags = [0, 50, 0, 700]
    group.decide(after_s=60)

    assert plan_of(group).drained_s == 60


@pytest.mark.parametrize("lags", [[90, 0, 0, 0], [0, 90, 0, 0]], ids=["kept", "given away"])
def test_plan_has_not_drained_what_others_have_drained(lags: list[int | None]) -> None:
    """90 records are more than a twentieth of 1,700, and less than one of what the group had."""
    group = shifted(rest_is_behind=700)
    group.state = replace(group.state, plan=replace(plan_of(group), lag=1_000_000))
    group.lags = lags
    group.decide(after_s=60)

    assert plan_of(group).drained_s is None


def test_backlog_is_not_known_to_be_gone_where_log_ends_are_old() -> None:
    group = shifted(rest_is_behind=0)
    group.lags, group.unanswered = [0, 0, 0, 0], (0,)
    group.decide(after_s=60)
    assert plan_of(group).drained_s is None

    group.unanswered = ()
    group.decide(after_s=60)
    assert plan_of(group).drained_s == 120


@pytest.mark.parametrize(("pause_s", "drained_s"), [(600, 600), (601, None), (172_800, None)])
def test_when_a_backlog_was_gone_in_a_long_pause_is_unknown(pause_s: int, drained_s: float | None) -> None:
    group = shifted(rest_is_behind=0)
    group.state = replace(group.state, cooldown_until_ms=NOW_MS + 1_000_000_000)
    group.lags = [0, 0, 0, 0]
    group.decide(after_s=pause_s)
    assert plan_of(group).drained_s == drained_s

    group.decide(after_s=60)
    assert plan_of(group).drained_s == drained_s


def test_plan_of_an_earlier_version_has_drained_when_the_group_has() -> None:
    group = shifted(rest_is_behind=700)
    group.state = replace(group.state, plan=replace(plan_of(group), drains=None, drains_lag=0))
    group.lags = [0, 50, 0, 700]
    group.decide(after_s=60)
    assert plan_of(group).drained_s is None

    group.lags = [0, 50, 0, 0]
    group.decide(after_s=60)
    assert plan_of(group).drained_s == 120


HELD = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
RATES = [100.0] * 4


@pytest.mark.parametrize(("ago_s", "at_commit", "drained_s"), [(50, 0, 60), (0, 5_000, None)])
def test_backlog_is_that_of_the_commits_and_not_what_has_arrived_since(
    ago_s: float, at_commit: int, drained_s: float | None
) -> None:
    """Both groups are 5,000 records behind the log end in each partition: one by its commit interval alone."""
    buried = committing(RATES, behind=[9_000, 8_000, 1_000, 0], every_s=60)
    first = decide(group(HELD), buried, RULES, None, FRESH, now_ms=NOW_MS)
    there = group({"a": {"t": (0, 3)}, "b": {"t": (1, 2)}})
    later_ms = NOW_MS + 60_000
    now = committing(RATES, behind=[at_commit] * 4, every_s=60, ago_s=ago_s, observed_at_ms=later_ms)
    assert (now.log_end - now.committed).tolist() == [5_000] * 4

    plan = decide(there, now, RULES, out(first), first.state, now_ms=later_ms).plan

    assert plan is not None
    assert (plan.status, plan.lag, plan.drained_s) == ("applied", 18_000, drained_s)


def test_plan_remembers_where_its_partitions_were_through_all_its_publications() -> None:
    group = walk()
    group.decide()
    group.held = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
    group.generation += 1

    assert group.decide(after_s=60).epoch == 2
    assert plan_of(group).undo == {"a": {"t": "1"}, "b": {"t": "3"}}
    assert plan_of(group).revoked == {"b": {"t": "3"}}


def test_members_that_a_plan_concerns_are_remembered_as_they_fared_and_others_are_not() -> None:
    group = Walk(
        held={"a": {"t": (0, 1)}, "b": {"t": (2,)}, "c": {"t": (3,)}},
        lags=[9_000, 8_000, 2, 20],
        arrival_rates=[11.0, 11.0, 1.0, 5.0],
        drain_rates=[10.0, 10.0, 1.0, 5.0],
    )
    group.order(pinned={"t": (2, 3)})
    moves = group.decide().moves

    assert [(move.from_member, move.to_member) for move in moves] == [("a", "b")]
    assert [
        (one.member_id, one.kept_up, one.losing, one.arriving, one.arriving_then)
        for one in plan_of(group).witnesses
    ] == [("a", False, 2.0, 22.0, 11.0), ("b", True, 0.0, 1.0, 12.0)]
