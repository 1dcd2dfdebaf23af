import pytest

from assignor.clients.follower.state import (
    Assign,
    Change,
    Commit,
    Committed,
    Event,
    Lost,
    Mark,
    Phase,
    PlanSeen,
    Revoked,
    Tell,
    Unassign,
    Write,
)
from assignor.protocol.acks import Accepted, Void
from tests.support.follow_driver import (
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
)


def test_revocation_gives_up_all_after_the_user_was_told(released: Driver) -> None:
    released.do(Revoked())

    assert released.kinds() == [Tell, Unassign, Write]
    assert released.the(Tell) == Tell(change=Change.REVOKED, places=frozenset({P0}))
    assert released.written() == [Void(**head(A), why="revoked")]
    assert released.state.phase is Phase.OUT
    assert released.do(Revoked()) == ()


def test_loss_tells_the_user_after_reading_has_ended(old_owner: Driver) -> None:
    old_owner.do(Lost())

    assert old_owner.kinds() == [Unassign, Write, Tell]
    assert old_owner.the(Tell).change is Change.LOST


def test_same_generation_again_leaves_given_partitions_where_they_are(released: Driver) -> None:
    released.do(Revoked(), assigned(A))

    assert released.state.held == {P0}


def test_same_generation_again_keeps_what_was_taken(new_owner: Driver) -> None:
    new_owner.hear(release(A, B, partition=1))
    new_owner.do(Committed(accepted=True, offsets={P1: 70}), Revoked(), assigned(B))

    assert new_owner.state.held == {P1, P2}


def test_same_generation_again_keeps_what_was_stopped_and_not_released(old_owner: Driver) -> None:
    old_owner.hear(Accepted(**head(B)))
    old_owner.do(Committed(accepted=False, offsets={}), Revoked(), assigned(A))

    assert P1 in old_owner.state.held | old_owner.state.marked(Mark.STOPPING)
    assert old_owner.the(Commit).offsets == {P1: None}


def test_same_generation_again_waits_for_a_release_that_was_not_taken(new_owner: Driver) -> None:
    new_owner.hear(release(A, B, partition=1))
    new_owner.do(Committed(accepted=False, offsets={}), Revoked(), assigned(B))
    assert new_owner.state.held == {P2}

    new_owner.hear(release(A, B, partition=1))

    assert new_owner.the(Commit).offsets == {P1: 70}


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
    driver.hear(Accepted(**head(A)))

    assert driver.the(Commit).offsets == {P1: None}
