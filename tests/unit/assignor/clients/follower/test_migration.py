"""A plan of a cluster whose brokers may migrate the group to KIP-848."""

from dataclasses import replace

import pytest

from assignor.clients.follower.state import Assign, Committed, Mark, Phase, PlanSeen, Rejoin, Revoked, Tick
from assignor.protocol.acks import Follows, Refused, Taken, Void
from assignor.protocol.migration import Migration, why_not
from tests.support.followers.follow_driver import (
    MOVE_1,
    P0,
    P1,
    A,
    B,
    Driver,
    assigned,
    following_new_owner,
    having_released,
    head,
    release,
)

NEXT = {"epoch": 6}
POSSIBLE = replace(MOVE_1, epoch=6, migration="possible")
UNKNOWN = replace(MOVE_1, epoch=6, migration="unknown")


@pytest.mark.parametrize("migration", ["possible", "unknown"])
def test_plan_is_refused_with_what_to_set_unless_migration_is_disabled(migration: Migration) -> None:
    driver = Driver()

    driver.do(assigned(A), PlanSeen(plan=replace(MOVE_1, migration=migration)))

    (refused,) = driver.written()
    assert isinstance(refused, Refused)
    assert refused.why == why_not(migration)
    assert refused.why.startswith(f"migration is {migration}: ")
    assert "group.consumer.migration.policy" in refused.why
    assert (driver.state.phase, driver.state.held) == (Phase.BASE, {P0, P1})


@pytest.mark.parametrize("migration", ["possible", "unknown"])
def test_member_that_is_told_to_accepts_despite_migration(migration: Migration) -> None:
    driver = Driver(despite_migration=True)

    driver.do(assigned(A), PlanSeen(plan=replace(MOVE_1, migration=migration)))

    assert driver.written() == [Follows(**head(A))]


def test_member_that_gave_something_away_rejoins_when_migration_has_become_possible() -> None:
    old_owner = having_released()

    old_owner.do(PlanSeen(plan=POSSIBLE))

    assert old_owner.kinds()[-1] is Rejoin
    assert old_owner.written() == [Refused(**head(A, **NEXT), why=why_not("possible") or "")]
    assert old_owner.state.phase is Phase.REJOIN
    old_owner.do(Revoked(), assigned(A, generation=4), Tick())
    assert old_owner.state.held == old_owner.state.base == {P0, P1}
    assert Rejoin not in old_owner.kinds()


def test_member_that_has_what_kafka_gave_it_stays_when_migration_has_become_possible(
    old_owner: Driver,
) -> None:
    old_owner.do(PlanSeen(plan=POSSIBLE))

    assert Rejoin not in old_owner.kinds()
    assert old_owner.state.phase is Phase.BASE


def test_what_is_handed_over_stays_when_migration_is_merely_unknown() -> None:
    old_owner = having_released()

    old_owner.do(PlanSeen(plan=UNKNOWN))

    assert Rejoin not in old_owner.kinds()
    assert (old_owner.state.phase, old_owner.state.tokens[P1].mark) == (Phase.BASE, Mark.RELEASED)


def test_commit_of_a_hand_over_is_answered_before_the_member_rejoins() -> None:
    new_owner = following_new_owner()
    new_owner.hear(release(A, B, partition=1))

    new_owner.do(PlanSeen(plan=POSSIBLE))
    before = new_owner.kinds()
    new_owner.do(Committed(accepted=True, offsets={P1: 70}))

    assert Rejoin not in before
    assert new_owner.kinds()[0] is Assign
    assert new_owner.kinds()[-1] is Rejoin
    assert [type(ack) for ack in new_owner.written()] == [Taken, Refused]


def test_commit_of_a_hand_over_that_is_refused_does_not_make_it_rejoin_twice() -> None:
    new_owner = following_new_owner()
    new_owner.hear(release(A, B, partition=1))

    new_owner.do(PlanSeen(plan=POSSIBLE))
    new_owner.do(Committed(accepted=False, offsets={}))

    assert new_owner.state.phase is Phase.OUT_PENDING
    assert [type(ack) for ack in new_owner.written()] == [Void]
