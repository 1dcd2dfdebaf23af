import pytest

from assignor.clients.follower.state import (
    Assign,
    Change,
    Commit,
    Committed,
    Event,
    Look,
    Looked,
    Lost,
    Phase,
    PlanSeen,
    Rejoin,
    Revoked,
    Tell,
    Unassign,
    Write,
)
from assignor.protocol.acks import Follows, Void
from tests.support.followers.follow_driver import (
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


def test_same_generation_again_is_left_by_who_does_not_know_what_became_of_its_commit(
    old_owner: Driver,
) -> None:
    """Kafka may have taken it: then the new owner reads the partition as soon as it looks."""
    old_owner.hear(Follows(**head(B)))
    old_owner.do(Committed(accepted=False, offsets={}), Revoked(), assigned(A))

    assert old_owner.state.held == {P0}
    assert old_owner.the(Rejoin)


def test_same_generation_again_looks_at_once_at_what_was_offered(new_owner: Driver) -> None:
    new_owner.hear(release(A, B, partition=1))
    new_owner.do(Committed(accepted=False, offsets={}), Revoked(), assigned(B))
    assert new_owner.state.held == {P2}
    assert new_owner.the(Look).places == {P1}

    new_owner.do(Looked(found={P1: new_owner.committed[P1]}))

    assert new_owner.the(Commit).offsets == {P1: 70}


def test_same_generation_again_repeats_a_look_that_was_not_answered(new_owner: Driver) -> None:
    new_owner.hear_of_no_commit(release(A, B, partition=1))

    new_owner.do(Revoked(), assigned(B))

    assert new_owner.the(Look).places == {P1}


def test_next_generation_looks_at_nothing_of_the_last(new_owner: Driver) -> None:
    new_owner.hear_of_no_commit(release(A, B, partition=1))

    new_owner.do(Revoked(), assigned(B, generation=4))

    assert Look not in new_owner.kinds()
    assert not new_owner.state.waiting


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

    driver.hear(Follows(**head(B, generation=2)), Follows(**head(B)))
    driver.do(assigned(A))
    driver.hear(Follows(**head(A)))

    assert driver.the(Commit).offsets == {P1: None}
