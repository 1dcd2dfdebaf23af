from dataclasses import replace
from typing import Any

import pytest

from assignor.clients.follower.state import (
    Assign,
    Change,
    Commit,
    Committed,
    Mark,
    Phase,
    PlanSeen,
    Rejoin,
    Revoked,
    Tell,
    Tick,
    Write,
)
from assignor.protocol.acks import Applied, Follows, Refused, Void
from tests.support.followers.follow_driver import (
    BASE,
    MOVE_1,
    P0,
    P1,
    P2,
    A,
    B,
    Driver,
    assigned,
    head,
    release,
    taken,
)
from tests.support.followers.follow_plans import plan


def test_assigned_partitions_are_read_and_told() -> None:
    driver = Driver()

    driver.do(assigned(A))

    assert driver.the(Assign).places == {P0, P1}
    assert driver.the(Tell) == Tell(change=Change.GAINED, places=frozenset({P0, P1}))
    assert driver.state.phase is Phase.BASE


def test_plan_that_fits_is_accepted_once() -> None:
    driver = Driver()

    driver.do(assigned(A), PlanSeen(plan=MOVE_1))
    assert driver.written() == [Follows(**head(A))]
    assert driver.state.phase is Phase.FOLLOW
    driver.do(PlanSeen(plan=MOVE_1), Tick())

    assert driver.written() == []


@pytest.mark.parametrize("events", [(), (PlanSeen(plan=MOVE_1),)])
def test_tick_with_nothing_due_makes_no_new_state(events: tuple[PlanSeen, ...]) -> None:
    driver = Driver()
    driver.do(assigned(A), *events)
    before = driver.state

    driver.do(Tick())

    assert driver.state is before


def test_static_member_stays_on_its_base() -> None:
    driver = Driver(static=True)

    driver.do(assigned(A), PlanSeen(plan=MOVE_1))

    assert driver.written() == [Refused(**head(A), why="static")]
    assert driver.state.phase is Phase.BASE


@pytest.mark.parametrize(
    ("offered", "why"),
    [
        (replace(MOVE_1, base_generation=2), "made for another generation"),
        (plan({B: [0, 1]}, {B: [0, 1]}, epoch=5, generation=3), "not a member of the plan"),
        (
            plan({A: [0], B: [1]}, {A: [0], B: [1]}, epoch=5, generation=3),
            "made for other partitions of this member",
        ),
        (plan(BASE, {A: [0], B: [1]}, epoch=5, generation=3), "target is not a permutation of the base"),
    ],
    ids=["older generation", "stranger", "other base", "partition dropped"],
)
def test_plan_that_does_not_fit_is_refused_with_the_reason(offered: Any, why: str) -> None:
    driver = Driver()

    driver.do(assigned(A), PlanSeen(plan=offered))

    assert driver.written() == [Refused(**head(A), why=why)]
    assert driver.state.phase is Phase.BASE


def test_plan_for_a_generation_to_come_is_decided_on_when_it_has_come() -> None:
    driver = Driver()

    driver.do(assigned(A, generation=2), PlanSeen(plan=MOVE_1))
    assert driver.written() == []
    driver.do(Revoked(), assigned(A))

    assert driver.written() == [Follows(**head(A))]


def test_partition_is_kept_until_its_new_owner_has_accepted_this_epoch(old_owner: Driver) -> None:
    assert old_owner.hear(Follows(**head(B, epoch=4))) == ()
    assert old_owner.hear(Follows(**head("c"))) == ()
    assert old_owner.hear(Follows(**head(B, generation=2))) == ()

    old_owner.hear(Follows(**head(B)))

    assert old_owner.kinds() == [Tell, Assign, Commit]
    assert old_owner.the(Tell) == Tell(change=Change.REVOKED, places=frozenset({P1}))
    assert old_owner.the(Assign).places == {P0}
    assert old_owner.the(Commit).offsets == {P1: None}


@pytest.mark.parametrize("said", [Refused, Void])
def test_new_owner_that_follows_no_more_gets_nothing(said: type[Refused | Void], old_owner: Driver) -> None:
    assert old_owner.hear(Follows(**head(B)), said(**head(B), why="…")) == ()


def test_partition_is_released_after_its_commit_with_the_offset_committed(released: Driver) -> None:
    assert released.written() == [release(A, B, partition=1)]
    assert released.state.held == {P0}


def test_refused_commit_releases_nothing_and_waits_for_the_client(old_owner: Driver) -> None:
    old_owner.hear(Follows(**head(B)))

    old_owner.do(Committed(accepted=False, offsets={}))

    assert old_owner.written() == [Void(**head(A), why="commit refused")]
    assert old_owner.state.phase is Phase.OUT_PENDING
    assert old_owner.state.held == {P0}
    assert old_owner.wait(9.9) == ()


def test_refused_commit_without_a_word_from_the_client_makes_the_group_rebalance(old_owner: Driver) -> None:
    old_owner.hear(Follows(**head(B)))
    old_owner.do(Committed(accepted=False, offsets={}))

    old_owner.wait(10.0)

    assert old_owner.the(Rejoin)


def test_release_is_said_three_times_and_then_the_group_rebalances(released: Driver) -> None:
    said = [len(released.wait(1.0)) for _ in range(9)]

    assert said == [0, 0, 0, 1, 0, 0, 0, 1, 0]
    assert released.state.phase is Phase.FOLLOW

    for _ in range(3):
        released.wait(1.0)

    assert released.kinds() == [Write, Rejoin]
    assert released.written() == [Void(**head(A), why="a release was not taken")]
    assert released.state.phase is Phase.REJOIN


def test_member_that_was_stopped_says_its_release_again_before_it_gives_up(released: Driver) -> None:
    released.wait(600.0)

    assert released.written() == [release(A, B, partition=1)]
    assert released.state.phase is Phase.FOLLOW


def test_taken_ends_the_hand_over_and_applies_the_plan(released: Driver) -> None:
    released.hear(taken(B, partition=1))

    assert released.written() == [Applied(**head(A))]
    assert released.wait(60.0) == ()


def test_taken_of_an_earlier_hand_over_does_not_count(old_owner: Driver) -> None:
    old_owner.state = replace(
        old_owner.state, tokens={**old_owner.state.tokens, P1: replace(old_owner.state.tokens[P1], hop=2)}
    )
    old_owner.hear(Follows(**head(B)))
    old_owner.do(Committed(accepted=True, offsets={P1: 70}))

    old_owner.hear(taken(B, partition=1, hop=1))

    assert old_owner.state.tokens[P1].mark is Mark.RELEASED


def test_released_partition_is_read_only_after_a_commit_of_its_offset(new_owner: Driver) -> None:
    new_owner.hear(release(A, B, partition=1))

    assert new_owner.the(Commit).offsets == {P1: 70}
    assert new_owner.state.held == {P2}

    new_owner.do(Committed(accepted=True, offsets={P1: 70}))

    assert new_owner.kinds() == [Assign, Write, Tell, Write]
    assert new_owner.the(Assign) == Assign(places=frozenset({P1, P2}), offsets={P1: 70})
    assert new_owner.written() == [taken(B, partition=1), Applied(**head(B))]


def test_member_that_was_evicted_while_stopped_takes_nothing(new_owner: Driver) -> None:
    new_owner.hear(release(A, B, partition=1))

    new_owner.do(Committed(accepted=False, offsets={}))

    assert new_owner.kinds() == [Write]
    assert new_owner.state.held == {P2}
    assert new_owner.state.phase is Phase.OUT_PENDING


def test_release_read_again_is_answered_again_and_changes_nothing(new_owner: Driver) -> None:
    new_owner.hear(release(A, B, partition=1))
    new_owner.do(Committed(accepted=True, offsets={P1: 70}))
    held = new_owner.state.held

    new_owner.hear(release(A, B, partition=1))

    assert new_owner.actions == (Write(ack=taken(B, partition=1)),)
    assert new_owner.state.held == held


def test_release_to_another_or_of_another_generation_is_not_for_this_member(new_owner: Driver) -> None:
    other_generation = replace(release(A, B, partition=1), generation=2)

    assert new_owner.hear(release(A, "c", partition=1), other_generation) == ()


def test_partition_that_is_held_cannot_be_released_to_its_holder(new_owner: Driver) -> None:
    assert new_owner.hear(release(A, B, partition=2)) == ()


def test_member_that_follows_no_plan_takes_what_is_released_to_it(new_owner: Driver) -> None:
    new_owner.do(PlanSeen(plan=None))
    new_owner.hear(release(A, B, partition=1))

    assert new_owner.the(Commit).offsets == {P1: 70}


def test_withdrawn_plan_moves_nothing_more_and_is_voided(old_owner: Driver) -> None:
    old_owner.do(PlanSeen(plan=None))
    assert old_owner.written() == [Void(**head(A), why="the plan is withdrawn or over")]

    assert old_owner.hear(Follows(**head(B))) == ()


def test_applied_plan_may_end_without_a_word(released: Driver) -> None:
    released.hear(taken(B, partition=1))

    assert released.do(PlanSeen(plan=None)) == ()


def test_newer_plan_is_followed_in_the_same_generation(released: Driver) -> None:
    released.hear(taken(B, partition=1))
    back = plan(BASE, {A: [0, 1], B: [2]}, epoch=6, generation=3)

    released.do(PlanSeen(plan=back))
    released.hear(replace(release(B, A, partition=1, hop=2, offset=90), epoch=6))
    released.do(Committed(accepted=True, offsets={P1: 90}))

    assert released.the(Assign) == Assign(places=frozenset({P0, P1}), offsets={P1: 90})


def test_newer_plan_may_start_from_where_the_partitions_are_now(released: Driver) -> None:
    released.hear(taken(B, partition=1))
    onwards = plan({A: [0], B: [1, 2]}, {A: [], B: [0, 1, 2]}, epoch=6, generation=3)

    released.do(PlanSeen(plan=onwards))

    assert released.written() == [Follows(**head(A, epoch=6))]
