"""A published plan: finished and not planned anew, and what became of it."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.planning.facts import AckFacts, PartitionFacts
from pipeline.planning.state import FRESH
from tests.support.planning.alone import decide
from tests.support.planning.facts import NO_GUARDS, NOW_MS, RULES, partitions
from tests.support.planning.facts import group as group_facts
from tests.support.planning.plan_walk import HALFWAY, Walk, out, walk

VALID_S = RULES.valid_for_ms / 1000


def said(kind: str, *, epoch: int = 1, member: str = "a", why: str | None = None) -> AckFacts:
    return AckFacts(kind=kind, member_id=member, epoch=epoch, why=why)


def test_target_stands_while_it_is_applied_whatever_lag_does() -> None:
    group = walk()
    first = group.decide()

    group.held, group.lags = HALFWAY, [0, 0, 900, 800]
    second = group.decide(after_s=60)

    assert (second.decided, second.assignment) == ("unchanged", first.assignment)
    assert second.reason == "plan epoch 1 is under way: 1 of 2 moves are made"
    assert second.plan is not None
    assert (second.plan.status, second.plan.is_adopted, second.plan.done) == ("open", True, 1)


def test_partition_between_two_members_does_not_end_the_plan() -> None:
    group = walk()
    group.decide()

    group.held = {"a": {"t": (0,)}, "b": {"t": (2, 3)}}
    group.generation += 1
    between = group.decide(after_s=10)

    assert between.decided == "unchanged"
    assert "no member has accepted it yet" in (between.reason or "")


def test_plan_that_everybody_has_taken_is_applied_and_the_next_decision_is_free() -> None:
    group = walk()
    group.apply(group.decide())

    there = group.decide(after_s=60)
    group.lags = [0, 0, 900, 800]
    free = group.decide(after_s=60)

    assert there.plan is not None
    assert (there.plan.status, there.plan.why) == ("applied", "all 2 moves are made")
    assert (free.decided, free.epoch) == ("publish", 2)


def test_group_that_took_a_plan_gets_it_again_at_once_in_a_new_generation() -> None:
    group = walk()
    first = group.decide()
    base = group.held
    group.apply(first)
    group.decide(after_s=60)

    group.held, group.generation = base, group.generation + 1
    group.lags = [0, 0, 900, 800]
    again = group.decide(after_s=1)

    assert (again.decided, again.epoch, again.assignment) == ("publish", 2, first.assignment)
    assert again.base_generation == 5
    assert [(m.partition, m.from_member, m.to_member) for m in again.moves] == [(1, "a", "b"), (3, "b", "a")]


def test_plan_half_made_is_published_again_before_it_expires() -> None:
    group = walk()
    first = group.decide()
    group.held = HALFWAY

    again = group.decide(after_s=VALID_S / 2)

    assert (again.decided, again.epoch, again.assignment) == ("publish", 2, first.assignment)
    assert [(m.partition, m.to_member) for m in again.moves] == [(3, "a")]


def test_plan_that_stands_still_is_not_published_for_ever() -> None:
    group = walk()
    group.decide()
    group.held = HALFWAY
    group.decide(after_s=VALID_S / 2)

    still = group.decide(after_s=VALID_S / 2)
    over = group.decide(after_s=VALID_S / 2)

    assert still.decided == "unchanged"
    assert over.plan is not None
    assert (over.plan.status, over.plan.why) == (
        "partly",
        "1 of 2 moves were made; the plan expired (plan.valid_for_s)",
    )


def test_plan_that_nobody_takes_expires() -> None:
    group = walk()
    group.decide()
    group.lags = [0, 0, 900, 800]

    decision = group.decide(after_s=VALID_S)

    assert decision.plan is not None
    assert (decision.plan.status, decision.plan.epoch) == ("expired", 1)
    assert decision.epoch == 2


def test_refusal_is_the_outcome_with_its_reason() -> None:
    group = walk()
    group.decide()
    group.acks = (said("refused", member="b", why="static"), said("refused", epoch=99, why="of another plan"))

    decision = group.decide(after_s=10)

    assert decision.plan is not None
    assert (decision.plan.status, decision.plan.why) == ("refused", "member b refused it: static")


def test_acceptance_adopts_a_plan_before_anything_has_moved() -> None:
    group = walk()
    group.decide()
    group.acks = (said("accepted"),)

    assert (group.decide(after_s=10).plan or pytest.fail("no plan")).is_adopted


@pytest.mark.parametrize(
    ("acks", "status", "why"),
    [
        pytest.param(
            (), "superseded", "the members or the partitions of the group have changed", id="untouched"
        ),
        pytest.param(
            (said("accepted"),),
            "superseded",
            "the members or the partitions of the group have changed",
            id="accepted",
        ),
    ],
)
def test_other_members_make_the_plan_void(acks: tuple[AckFacts, ...], status: str, why: str) -> None:
    group = walk()
    group.decide()
    group.acks = acks

    group.held, group.generation = {**group.held, "c": {}}, 5
    decision = group.decide(after_s=1)

    assert decision.plan is not None
    assert (decision.plan.status, decision.plan.why) == (status, why)
    assert (decision.decided, decision.epoch) == ("publish", 2)


def test_drain_that_came_true_stands_beside_the_predicted_one() -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=30)

    group.lags = [40, 30, 0, 0]
    drained = group.decide(after_s=70)
    group.lags = [900, 800, 10, 0]
    later = group.decide(after_s=70)

    assert drained.plan is not None
    assert drained.plan.drained_s == 100
    assert later.plan is not None
    assert later.plan.drained_s == 100


def test_plan_of_another_driver_on_the_topic_ends_ours() -> None:
    group = walk()
    group.decide()
    assert group.published is not None
    group.published = replace(group.published, epoch=7, target_hash="", valid_until_ms=0)
    decision = group.decide(after_s=1)

    assert decision.plan is not None
    assert (decision.plan.status, decision.epoch) == ("superseded", 8)


def test_plan_that_was_decided_and_never_sent_is_made_anew() -> None:
    group = walk()
    group.decide()
    assert group.published is not None
    group.published = replace(group.published, target_hash="", base_hash="", valid_until_ms=0)

    assert group.decide(after_s=1).epoch == 2


def test_group_that_never_moves_is_not_asked_again_for_ever() -> None:
    """Each publication makes the group rebalance, and each rebalance asks for a publication."""
    group = walk()
    group.decide()
    group.acks = (said("accepted"),)
    seen = []
    for _ in range(10):
        group.generation += 1
        seen.append((group.decide(after_s=60).plan or pytest.fail("no plan")).status)

    assert seen == ["open"] * 9 + ["expired"]


def test_rebalance_between_two_moves_gives_the_rest_its_time() -> None:
    group = walk()
    first = group.decide()
    group.held = HALFWAY
    group.decide(after_s=VALID_S / 2 - 1)

    group.generation += 1
    again = group.decide(after_s=1)

    assert (again.decided, again.assignment) == ("publish", first.assignment)
    assert again.state.plan is not None
    assert again.state.plan.valid_until_ms == group.now_ms + RULES.valid_for_ms


def test_moves_are_counted_from_where_a_rebalance_has_put_the_partitions() -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.held, group.generation = {"a": {"t": (1, 2)}, "b": {"t": (0, 3)}}, 5
    group.decide(after_s=1)

    group.held = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
    plan = group.decide(after_s=10).plan

    assert plan is not None
    assert (plan.done, plan.moves) == (3, 4)


@pytest.mark.parametrize(
    ("held", "status", "why"),
    [
        pytest.param(
            HALFWAY, "partly", "1 of 2 moves were made; member a refused it: two claims", id="halfway"
        ),
        pytest.param(
            {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}},
            "refused",
            "member a refused it: two claims",
            id="from the start",
        ),
    ],
)
def test_plan_that_is_refused_after_a_rebalance_is_over(
    held: dict[str, dict[str, tuple[int, ...]]], status: str, why: str
) -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.held, group.generation = held, 5
    group.decide(after_s=1)

    group.acks, group.generation = (said("refused", epoch=2, why="two claims"),), 6
    after = group.decide(after_s=1)

    assert after.plan is not None
    assert (after.plan.status, after.plan.why) == (status, why)


def test_refusal_of_one_does_not_end_what_others_have_accepted() -> None:
    group = walk()
    group.decide()
    group.acks = (said("accepted"), said("refused", member="b", why="static"))

    under_way = group.decide(after_s=10)
    over = group.decide(after_s=VALID_S)

    assert under_way.plan is not None
    assert under_way.plan.status == "open"
    assert over.plan is not None
    assert over.plan.why == "the plan expired (plan.valid_for_s); member b refused it: static"


@pytest.mark.parametrize("begun", [False, True])
def test_plan_that_was_applied_while_nobody_could_look_at_the_group_is_applied_though_its_time_ended(
    *, begun: bool
) -> None:
    group = walk()
    first = group.decide()
    if begun:
        group.held = HALFWAY
    group.decide(after_s=60)
    group.apply(first)
    group.unanswered = (0, 1, 2, 3)
    unseen = group.decide(after_s=VALID_S - 60)
    group.unanswered = ()

    found = group.decide(after_s=60).plan

    assert unseen.plan is not None
    assert (unseen.decided, unseen.plan.status) == ("abstain", "partly" if begun else "expired")
    assert (unseen.plan.why or "").endswith(
        "the plan expired (plan.valid_for_s) while lagwise could not look at the group"
    )
    assert found is not None
    assert (found.status, found.why) == ("applied", "all 2 moves are made")
    assert (found.status_at_ms, found.is_restored) == (group.now_ms, True)


def test_plan_that_was_not_applied_at_the_first_look_after_its_time_stays_expired() -> None:
    group = walk()
    first = group.decide()
    group.unanswered = (0, 1, 2, 3)
    group.decide(after_s=VALID_S)
    group.unanswered, group.rules = (), replace(RULES, guards=replace(NO_GUARDS, settle_ms=86_400_000))
    group.decide(after_s=60)
    group.apply(first)

    later = group.decide(after_s=60).plan

    assert later is not None
    assert (later.status, later.is_restored) == ("expired", False)


def test_plan_that_a_member_does_not_answer_is_withdrawn_before_it_answers_late() -> None:
    """Otherwise members would follow, once b has read it, a plan that lagwise no longer watches."""
    group = walk()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, cooldown_ms=600_000, cooldown_max_ms=600_000))
    group.decide()
    group.acks = (said("accepted"),)
    under_way = group.decide(after_s=59)

    withdrawn = group.decide(after_s=1)
    group.acks = (said("accepted"), said("accepted", member="b"))
    late = group.decide(after_s=30)

    assert under_way.decided == "unchanged"
    assert (withdrawn.decided, withdrawn.epoch, withdrawn.record) == ("publish", 2, None)
    why = "member b did not answer within plan.guards.settle_s, and others had accepted it"
    assert withdrawn.reason == f"withdrawn: {why}"
    assert withdrawn.plan is not None
    assert (withdrawn.plan.status, withdrawn.plan.why) == ("superseded", why)
    assert (late.decided, late.state.plan and late.state.plan.is_restored) == ("unchanged", False)


def test_plan_that_is_half_made_and_published_again_waits_for_a_late_answer() -> None:
    group = walk()
    first = group.decide()
    group.held = HALFWAY
    again = group.decide(after_s=VALID_S / 2)
    group.acks = (said("accepted", epoch=2),)

    late = group.decide(after_s=60)
    group.apply(first)
    applied = group.decide(after_s=60).plan

    assert (again.decided, again.epoch) == ("publish", 2)
    assert (late.decided, late.reason) == (
        "unchanged",
        "plan epoch 2 is under way: 1 of 2 moves are made",
    )
    assert applied is not None
    assert applied.status == "applied"


def test_partition_between_two_members_is_waited_for_before_the_plan_is_published_again() -> None:
    group = walk()
    group.decide()
    group.held = {"a": {"t": (0,)}, "b": {"t": (1, 2)}}

    between = group.decide(after_s=VALID_S / 2)
    group.held = HALFWAY
    back = group.decide(after_s=10)

    assert (between.decided, back.decided) == ("unchanged", "publish")


@pytest.mark.parametrize("after_s", [10, VALID_S], ids=["while it is valid", "later"])
def test_plan_comes_back_when_its_members_are_alone_again(after_s: float) -> None:
    group = applied()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, settle_ms=86_400_000))
    base = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}

    group.held, group.generation = {**base, "c": {}}, 5
    group.decide(after_s=after_s)
    group.held, group.generation = base, 6

    assert group.decide(after_s=600).decided == "publish"


@pytest.mark.parametrize(
    ("pause_s", "reason"),
    [
        (600, None),
        (601, "held back by confirmations: 1 of 2 evaluations in a row found that a plan is needed"),
        (172_800, "held back by confirmations: 1 of 2 evaluations in a row found that a plan is needed"),
    ],
)
def test_plan_of_before_a_long_pause_comes_back_only_through_the_guards(
    pause_s: int, reason: str | None
) -> None:
    group = applied()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, confirmations=2))
    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 5

    again = group.decide(after_s=pause_s)

    assert (again.decided, again.reason) == ("unchanged" if reason else "publish", reason)


def applied() -> Walk:
    """A group that has taken its plan."""
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    return group


def test_target_that_would_help_no_longer_is_not_brought_back() -> None:
    group = applied()
    group.rules = replace(RULES, guards=replace(NO_GUARDS, min_improvement=0.1, settle_ms=86_400_000))

    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 5
    group.lags = [0, 0, 900, 0]
    rebalanced = group.decide(after_s=10)
    group.lags = [900, 800, 10, 0]
    later = group.decide(after_s=10)

    assert [each.decided for each in (rebalanced, later)] == ["unchanged", "unchanged"]
    assert (later.reason or "").startswith("held back by settle")


def test_guest_for_whom_there_is_nothing_to_move_does_not_end_the_plan() -> None:
    group = walk()
    group.apply(group.decide())
    group.decide(after_s=60)
    group.rules = replace(RULES, guards=replace(NO_GUARDS, settle_ms=86_400_000))

    group.held, group.generation = {"a": {"t": (0,)}, "b": {"t": (1,)}, "c": {"t": (2, 3)}}, 5
    with_guest = group.decide(after_s=10)
    group.held, group.generation = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, 6
    back = group.decide(after_s=10)

    assert (with_guest.decided, with_guest.moves) == ("unchanged", ())
    assert (back.decided, back.epoch) == ("publish", 2)


def test_plan_that_leaves_partitions_out_is_about_the_group_still() -> None:
    """A join of three partitions with two: partition 2 has nobody to go to."""
    facts = group_facts({"a": {"t": (0, 1), "u": (0, 1)}, "b": {"t": (2,)}})
    facts = replace(facts, members=tuple(replace(member, topics=("t", "u")) for member in facts.members))
    lags = _both(partitions([5, 5, 5]), partitions([5, 5], topic="u"))
    rules = replace(RULES, strategy="sticky-stream-join")
    first = decide(facts, lags, rules, None, FRESH, now_ms=NOW_MS)

    second = decide(facts, lags, rules, out(first), first.state, now_ms=NOW_MS + 1000)

    assert (first.decided, first.target is not None and first.target.unassigned != {}) == ("publish", True)
    assert second.plan is not None
    assert second.plan.status == "open"


def _both(one: PartitionFacts, other: PartitionFacts) -> PartitionFacts:
    names = [name for name in PartitionFacts.__slots__ if name not in {"topic", "topics"}]
    arrays = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in names}
    return PartitionFacts(topic=one.topic + other.topic, **arrays)


def test_strangers_acknowledge_nothing() -> None:
    group = walk()
    group.decide()
    group.acks = (
        said("accepted", member="left long ago"),
        said("refused", member="left long ago", why="static"),
    )

    plan = group.decide(after_s=10).plan

    assert plan is not None
    assert (plan.status, plan.is_adopted) == ("open", False)


def test_plan_that_was_refused_on_its_way_goes_through_the_guards_again() -> None:
    group = walk()
    guards = replace(NO_GUARDS, cooldown_ms=3_600_000, cooldown_max_ms=3_600_000)
    group.rules = replace(RULES, guards=guards)
    group.decide()
    group.held = HALFWAY
    epochs = []
    for _ in range(6):
        decision = group.decide(after_s=VALID_S / 2 + 1)
        epochs.append(decision.epoch)
        assert group.published is not None
        group.acks = (said("refused", epoch=group.published.epoch, member="b", why="two claims"),)

    assert epochs == [2, None, None, None, None, None]
