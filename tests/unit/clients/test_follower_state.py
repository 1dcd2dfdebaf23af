from dataclasses import replace
from typing import Any, TypeVar

import pytest

from assignor.clients.follower_state import (
    AcksSeen,
    Action,
    Assign,
    Assigned,
    Change,
    Commit,
    Committed,
    Event,
    FollowerState,
    Instant,
    Lost,
    Mark,
    Phase,
    PlanSeen,
    Rejoin,
    Revoked,
    Settings,
    Tell,
    Tick,
    Unassign,
    Write,
)
from assignor.clients.follower_state_rules import advance
from assignor.protocol.acks import Accepted, AnyAck, Applied, Refused, Release, Taken, Void
from tests.support.follow_plans import CLUSTER, GROUP, plan

A, B = "a", "b"
P0, P1, P2 = ("t", 0), ("t", 1), ("t", 2)
BASE = {A: [0, 1], B: [2]}
MOVE_1 = plan(BASE, {A: [0], B: [1, 2]}, epoch=5, generation=3)
KindOfAction = TypeVar("KindOfAction", bound=Action)


class Driver:
    """One follower; `do` is one event, and `commit` its answer to a commit."""

    def __init__(self, *, static: bool = False) -> None:
        self.state = FollowerState(settings=Settings(cluster=CLUSTER, group=GROUP, static=static))
        self.now_s = 0.0
        self.actions: tuple[Action, ...] = ()

    def do(self, *events: Event) -> tuple[Action, ...]:
        done: list[Action] = []
        for event in events:
            self.state, actions = advance(self.state, event, Instant(monotonic_s=self.now_s, wall_ms=1_000))
            done += actions
        self.actions = tuple(done)
        return self.actions

    def hear(self, *acks: AnyAck) -> tuple[Action, ...]:
        return self.do(AcksSeen(acks=acks))

    def wait(self, seconds: float) -> tuple[Action, ...]:
        self.now_s += seconds
        return self.do(Tick())

    def written(self) -> list[AnyAck]:
        return [action.ack for action in self.actions if isinstance(action, Write)]

    def the(self, kind: type[KindOfAction]) -> KindOfAction:
        (found,) = [action for action in self.actions if isinstance(action, kind)]
        return found

    def kinds(self) -> list[type[Any]]:
        return [type(action) for action in self.actions]


def head(member: str, *, epoch: int = 5, generation: int = 3) -> dict[str, Any]:
    return {
        "cluster": CLUSTER,
        "group": GROUP,
        "generation": generation,
        "epoch": epoch,
        "member": member,
        "at_ms": 1_000,
    }


def release(giver: str, to: str, *, partition: int, hop: int = 1, offset: int = 70) -> Release:
    return Release(**head(giver), to=to, topic="t", partition=partition, hop=hop, offset=offset)


def taken(member: str, *, partition: int, hop: int = 1) -> Taken:
    return Taken(**head(member), topic="t", partition=partition, hop=hop)


def assigned(member: str, *, generation: int = 3) -> Assigned:
    return Assigned(member=member, generation=generation, places=frozenset(("t", p) for p in BASE[member]))


@pytest.fixture
def giver() -> Driver:
    """Member a, which follows a plan that gives partition 1 to member b."""
    driver = Driver()
    driver.do(assigned(A), PlanSeen(plan=MOVE_1))
    return driver


@pytest.fixture
def taker() -> Driver:
    driver = Driver()
    driver.do(assigned(B), PlanSeen(plan=MOVE_1))
    return driver


@pytest.fixture
def released(giver: Driver) -> Driver:
    giver.hear(Accepted(**head(B)))
    giver.do(Committed(accepted=True, offsets={P1: 70}))
    return giver


def test_assigned_partitions_are_read_and_told() -> None:
    driver = Driver()

    driver.do(assigned(A))

    assert driver.the(Assign).places == {P0, P1}
    assert driver.the(Tell) == Tell(change=Change.GAINED, places=frozenset({P0, P1}))
    assert driver.state.phase is Phase.BASE


def test_plan_that_fits_is_accepted_once(giver: Driver) -> None:
    assert giver.written() == [Accepted(**head(A))]
    assert giver.state.phase is Phase.FOLLOW

    giver.do(PlanSeen(plan=MOVE_1), Tick())

    assert giver.written() == []


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

    assert driver.written() == [Accepted(**head(A))]


def test_partition_is_kept_until_its_taker_has_accepted_this_epoch(giver: Driver) -> None:
    assert giver.hear(Accepted(**head(B, epoch=4))) == ()
    assert giver.hear(Accepted(**head("c"))) == ()
    assert giver.hear(Accepted(**head(B, generation=2))) == ()

    giver.hear(Accepted(**head(B)))

    assert giver.kinds() == [Tell, Assign, Commit]
    assert giver.the(Tell) == Tell(change=Change.REVOKED, places=frozenset({P1}))
    assert giver.the(Assign).places == {P0}
    assert giver.the(Commit).offsets == {P1: None}


@pytest.mark.parametrize("said", [Refused, Void])
def test_taker_that_follows_no_more_gets_nothing(said: type[Refused | Void], giver: Driver) -> None:
    assert giver.hear(Accepted(**head(B)), said(**head(B), why="…")) == ()


def test_partition_is_released_after_its_commit_with_the_offset_committed(released: Driver) -> None:
    assert released.written() == [release(A, B, partition=1)]
    assert released.state.held == {P0}


def test_refused_commit_releases_nothing_and_waits_for_the_client(giver: Driver) -> None:
    giver.hear(Accepted(**head(B)))

    giver.do(Committed(accepted=False, offsets={}))

    assert giver.written() == [Void(**head(A), why="commit refused")]
    assert giver.state.phase is Phase.OUT_PENDING
    assert giver.state.held == {P0}
    assert giver.wait(9.9) == ()


def test_refused_commit_without_a_word_from_the_client_makes_the_group_rebalance(giver: Driver) -> None:
    giver.hear(Accepted(**head(B)))
    giver.do(Committed(accepted=False, offsets={}))

    giver.wait(10.0)

    assert giver.the(Rejoin)


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


def test_taken_of_an_earlier_hand_over_does_not_count(giver: Driver) -> None:
    giver.state = replace(
        giver.state, tokens={**giver.state.tokens, P1: replace(giver.state.tokens[P1], hop=2)}
    )
    giver.hear(Accepted(**head(B)))
    giver.do(Committed(accepted=True, offsets={P1: 70}))

    giver.hear(taken(B, partition=1, hop=1))

    assert giver.state.tokens[P1].mark is Mark.RELEASED


def test_released_partition_is_read_only_after_a_commit_of_its_offset(taker: Driver) -> None:
    taker.hear(release(A, B, partition=1))

    assert taker.the(Commit).offsets == {P1: 70}
    assert taker.state.held == {P2}

    taker.do(Committed(accepted=True, offsets={P1: 70}))

    assert taker.kinds() == [Assign, Write, Tell, Write]
    assert taker.the(Assign) == Assign(places=frozenset({P1, P2}), offsets={P1: 70})
    assert taker.written() == [taken(B, partition=1), Applied(**head(B))]


def test_member_that_was_evicted_while_stopped_takes_nothing(taker: Driver) -> None:
    taker.hear(release(A, B, partition=1))

    taker.do(Committed(accepted=False, offsets={}))

    assert taker.kinds() == [Write]
    assert taker.state.held == {P2}
    assert taker.state.phase is Phase.OUT_PENDING


def test_release_heard_again_is_answered_again_and_changes_nothing(taker: Driver) -> None:
    taker.hear(release(A, B, partition=1))
    taker.do(Committed(accepted=True, offsets={P1: 70}))
    held = taker.state.held

    taker.hear(release(A, B, partition=1))

    assert taker.actions == (Write(ack=taken(B, partition=1)),)
    assert taker.state.held == held


def test_release_to_another_or_of_another_generation_is_not_for_this_member(taker: Driver) -> None:
    other_generation = replace(release(A, B, partition=1), generation=2)

    assert taker.hear(release(A, "c", partition=1), other_generation) == ()


def test_partition_that_is_held_cannot_be_released_to_its_holder(taker: Driver) -> None:
    assert taker.hear(release(A, B, partition=2)) == ()


def test_member_that_follows_no_plan_takes_what_is_released_to_it(taker: Driver) -> None:
    taker.do(PlanSeen(plan=None))
    taker.hear(release(A, B, partition=1))

    assert taker.the(Commit).offsets == {P1: 70}


def test_withdrawn_plan_moves_nothing_more_and_is_voided(giver: Driver) -> None:
    giver.do(PlanSeen(plan=None))
    assert giver.written() == [Void(**head(A), why="the plan is withdrawn or over")]

    assert giver.hear(Accepted(**head(B))) == ()


def test_applied_plan_may_end_without_a_word(released: Driver) -> None:
    released.hear(taken(B, partition=1))

    assert released.do(PlanSeen(plan=None)) == ()


def test_newer_plan_is_followed_in_the_same_generation(released: Driver) -> None:
    released.hear(taken(B, partition=1))
    back = plan(BASE, {A: [0, 1], B: [2]}, epoch=6, generation=3)

    released.do(PlanSeen(plan=back))
    released.hear(release(B, A, partition=1, hop=2, offset=90))
    released.do(Committed(accepted=True, offsets={P1: 90}))

    assert released.the(Assign) == Assign(places=frozenset({P0, P1}), offsets={P1: 90})


def test_newer_plan_may_start_from_where_the_partitions_are_now(released: Driver) -> None:
    released.hear(taken(B, partition=1))
    onwards = plan({A: [0], B: [1, 2]}, {A: [], B: [0, 1, 2]}, epoch=6, generation=3)

    released.do(PlanSeen(plan=onwards))

    assert released.written() == [Accepted(**head(A, epoch=6))]


def test_revocation_gives_up_all_after_the_user_was_told(released: Driver) -> None:
    released.do(Revoked())

    assert released.kinds() == [Tell, Unassign, Write]
    assert released.the(Tell) == Tell(change=Change.REVOKED, places=frozenset({P0}))
    assert released.written() == [Void(**head(A), why="revoked")]
    assert released.state.phase is Phase.OUT
    assert released.do(Revoked()) == ()


def test_loss_tells_the_user_after_reading_has_ended(giver: Driver) -> None:
    giver.do(Lost())

    assert giver.kinds() == [Unassign, Write, Tell]
    assert giver.the(Tell).change is Change.LOST


def test_same_generation_again_leaves_given_partitions_where_they_are(released: Driver) -> None:
    released.do(Revoked(), assigned(A))

    assert released.state.held == {P0}


def test_same_generation_again_keeps_what_was_taken(taker: Driver) -> None:
    taker.hear(release(A, B, partition=1))
    taker.do(Committed(accepted=True, offsets={P1: 70}), Revoked(), assigned(B))

    assert taker.state.held == {P1, P2}


def test_same_generation_again_keeps_what_was_stopped_and_not_released(giver: Driver) -> None:
    giver.hear(Accepted(**head(B)))
    giver.do(Committed(accepted=False, offsets={}), Revoked(), assigned(A))

    assert P1 in giver.state.held | giver.state.marked(Mark.STOPPING)
    assert giver.the(Commit).offsets == {P1: None}


def test_same_generation_again_waits_for_a_release_that_was_not_taken(taker: Driver) -> None:
    taker.hear(release(A, B, partition=1))
    taker.do(Committed(accepted=False, offsets={}), Revoked(), assigned(B))
    assert taker.state.held == {P2}

    taker.hear(release(A, B, partition=1))

    assert taker.the(Commit).offsets == {P1: 70}


@pytest.mark.parametrize("end", [Revoked(), Lost()], ids=["revoked", "lost"])
def test_next_generation_starts_from_what_kafka_assigned(released: Driver, end: Event) -> None:
    released.do(end, assigned(A, generation=4))

    assert released.the(Assign).places == {P0, P1}


def test_lost_generation_is_never_the_same_again(released: Driver) -> None:
    released.do(Lost(), assigned(A))

    assert released.the(Assign).places == {P0, P1}


def test_acks_of_the_next_generation_may_arrive_before_it() -> None:
    driver = Driver()
    driver.do(assigned(A, generation=2), Revoked(), PlanSeen(plan=MOVE_1))

    driver.hear(Accepted(**head(B, generation=2)), Accepted(**head(B)))
    driver.do(assigned(A))

    assert driver.the(Commit).offsets == {P1: None}
