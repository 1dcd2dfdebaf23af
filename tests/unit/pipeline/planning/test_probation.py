"""A probation after a plan that hurt: in the row of each decision, and until when or until which order it holds."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pipeline.planning import reasons
from pipeline.planning.life.next_state import on_judged
from pipeline.planning.rows.row_of_decision import to_row
from pipeline.planning.state import FRESH, PlanState, Witness, from_json, to_json
from pipeline.planning.values import Decision
from tests.support.planning.facts import NO_GUARDS, NOW_MS
from tests.support.planning.plan_walk import Walk, walk
from tests.unit.pipeline.planning.test_needless import plan

_PROBATION_S = 600


@pytest.fixture
def group() -> Walk:
    """A group with lag, on probation for two plans that hurt, which has an order of an hour ago."""
    made = walk()
    made.order(resumed_at_ms=made.now_ms - 3_600_000)
    made.state = made.decide().state
    made.state = replace(
        made.state,
        plan=None,
        hurts=2,
        hurt_at_ms=made.now_ms,
        probation_until_ms=made.now_ms + _PROBATION_S * 1000,
    )
    made.published = None
    return made


def _reason(decision: Decision) -> str:
    return str(decision.reason).partition("; ")[0]


def test_no_plan_before_the_probation_ends_also_where_an_older_resume_stands(group: Walk) -> None:
    assert _reason(group.decide()) == "held back by probation: 2 plans hurt, so no plan for another 600 s"
    assert group.decide(after_s=_PROBATION_S - 1).decided == "unchanged"

    assert group.decide(after_s=1).decided == "publish"


@pytest.mark.parametrize("clock_s", [-1800, 0, 1800])
def test_resume_ends_the_probation_whatever_the_clock_of_the_one_who_gives_it(
    group: Walk, clock_s: int
) -> None:
    group.order(resumed_at_ms=group.now_ms + clock_s * 1000)

    resumed = group.decide(after_s=1)

    assert resumed.decided == "publish"
    assert (resumed.state.hurts, resumed.state.probation_until_ms) == (0, 0)


def test_resume_ends_the_probation_after_one_of_a_clock_that_was_ahead(group: Walk) -> None:
    group.state = replace(group.state, resumed_at_ms=group.now_ms + 86_400_000)
    group.order(resumed_at_ms=group.now_ms)

    assert group.decide(after_s=1).decided == "publish"


def test_resume_is_obeyed_once(group: Walk) -> None:
    group.order(resumed_at_ms=group.now_ms)
    group.decide(after_s=1)
    group.state = replace(group.state, plan=None, probation_until_ms=group.now_ms + 5_000)
    group.published = None

    assert group.decide(after_s=1).decided == "unchanged"


def test_row_has_the_end_of_the_probation_while_it_lasts(group: Walk) -> None:
    decision = group.decide()

    row = to_row("g", decision, at_ms=group.now_ms, batch_id=1)
    later = to_row("g", decision, at_ms=group.now_ms + _PROBATION_S * 1000, batch_id=1)

    assert row["probation_until"] == row["updated_at"] + timedelta(seconds=_PROBATION_S)
    assert later["probation_until"] is None


def test_row_has_the_effect_of_the_plan_before_it_with_the_evidence() -> None:
    made = walk()
    decision = made.decide()
    plan = decision.state.plan
    assert isinstance(plan, PlanState)
    hurt = replace(plan, effect="hurt", effect_why="member b kept up before and loses ground since")

    row = to_row("g", replace(decision, plan=hurt), at_ms=made.now_ms, batch_id=1)
    unjudged = to_row("g", replace(decision, plan=plan), at_ms=made.now_ms, batch_id=1)

    assert (row["plan_effect"], row["plan_effect_why"]) == ("hurt", hurt.effect_why)
    assert (unjudged["plan_effect"], unjudged["plan_effect_why"]) == (None, None)


def probation_s(hurt: PlanState, *, hurts: int = 0) -> float:
    """How long the group is on probation after the plan, with pauses of two minutes."""
    now_ms, guards = hurt.effect_at_ms, replace(NO_GUARDS, cooldown_ms=120_000, cooldown_max_ms=86_400_000)
    state = from_json(to_json(replace(FRESH, plan=hurt, hurts=hurts, hurt_at_ms=now_ms - 1)))
    return (on_judged(state, guards, now_ms=now_ms).probation_until_ms - now_ms) / 1000


def hurt_by(*, kept_up: bool, giver: str = "a", is_needless: bool = False) -> PlanState:
    """A plan that hurt, and took a partition from a member; member a kept up before it, or did not."""
    witness = Witness(member_id="a", kept_up=kept_up, losing=0.0, arriving=50.0, arriving_then=50.0)
    return plan(
        is_needless=is_needless,
        effect="hurt",
        effect_at_ms=NOW_MS,
        undo={giver: {"t": "0"}},
        witnesses=(witness,),
    )


def test_probation_is_short_after_a_plan_that_relieved_a_member_which_was_behind() -> None:
    relief = hurt_by(kept_up=False)

    assert [probation_s(relief, hurts=hurts) for hurts in range(3)] == [360, 720, 1_440]


@pytest.mark.parametrize(
    "hurt",
    [
        hurt_by(kept_up=True),
        hurt_by(kept_up=False, giver="b"),
        hurt_by(kept_up=False, is_needless=True),
        replace(hurt_by(kept_up=False), witnesses=()),
    ],
    ids=["it kept up", "it was given something", "needless", "nothing is known of its members"],
)
def test_probation_is_long_after_a_plan_that_relieved_nobody_measurably(hurt: PlanState) -> None:
    assert [probation_s(hurt, hurts=hurts) for hurts in range(3)] == [1_200, 2_400, 4_800]


def pauses_s(effects: str, why: str = reasons.ARRIVALS_CHANGED) -> list[float]:
    """How long a group gets no plan after each of these effects (h, u, c): helped, hurt, cannot tell."""
    guards = replace(NO_GUARDS, cooldown_ms=120_000, cooldown_max_ms=86_400_000)
    names, state, found = {"h": "helped", "u": "hurt", "c": "cannot tell"}, FRESH, []
    for effect in effects:
        judged = plan(effect=names[effect], effect_at_ms=NOW_MS, effect_why=why)
        state = replace(state, plan=judged, cooldown_until_ms=NOW_MS)
        state = from_json(to_json(on_judged(state, guards, now_ms=NOW_MS)))
        found.append((state.cooldown_until_ms - NOW_MS) / 1000)
    return found


@pytest.mark.parametrize("why", [reasons.ARRIVALS_CHANGED, reasons.NO_EFFECT_SEEN])
def test_pause_is_doubled_by_each_plan_without_a_clear_effect_from_the_second_on_up_to_half_an_hour(
    why: str,
) -> None:
    assert pauses_s("cccccc", why) == [0, 480, 960, 1920, 1920, 1920]


@pytest.mark.parametrize("clear", ["h", "u"])
def test_plan_with_a_clear_effect_makes_the_pause_short_again(clear: str) -> None:
    assert pauses_s(f"cc{clear}cc") == [0, 480, 0, 0, 480]


@pytest.mark.parametrize(
    "why",
    [reasons.NOT_APPLIED, reasons.REBALANCED_SINCE, reasons.NOTHING_ARRIVES, reasons.NOBODY_WAS_BEHIND],
    ids=str,
)
def test_plan_whose_effect_others_hide_makes_no_pause_longer(why: str) -> None:
    assert pauses_s("ccc", why) == [0, 0, 0]


def test_resume_makes_the_pause_short_again() -> None:
    made = walk()
    made.state = replace(made.decide().state, unclear=3)
    made.order(resumed_at_ms=made.now_ms)

    assert made.decide(after_s=1).state.unclear == 0
