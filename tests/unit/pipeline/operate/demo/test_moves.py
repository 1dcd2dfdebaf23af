from collections.abc import Sequence

import pytest

from assignor.protocol.acks import AnyAck, Applied, Follows, Release, Taken
from pipeline.operate.demo.moves import Moves, client_of
from tests.support.followers.follow_plans import plan
from tests.support.operate.demo_views import NOON

_AT_MS = int(NOON.timestamp() * 1000)
_SAID = {"cluster": "demo", "group": "billing", "generation": 3, "epoch": 2, "at_ms": _AT_MS}
_PLACE = {"topic": "orders", "partition": 7}
_A, _B = (f"billing-{n}-0dcb9a3c-62ef-4a6e-9c1f-0123456789ab" for n in (1, 4))
_RELEASE = Release(**_SAID, **_PLACE, member=_A, to=_B, hop=1, offset=12)
_TAKEN = Taken(**_SAID, **_PLACE, member=_B, hop=1)
_BACK = Release(**_SAID, **_PLACE, member=_B, to=_A, hop=2, offset=15)
_TAKEN_BACK = Taken(**_SAID, **_PLACE, member=_A, hop=2)


def test_a_move_is_what_was_released_and_taken() -> None:
    (move,) = Moves().feed([Follows(**_SAID, member=_A), _RELEASE, _TAKEN])

    assert (move.group_id, move.epoch, move.topic, move.partition) == ("billing", 2, "orders", 7)
    assert (move.from_client, move.to_client, move.at) == ("billing-1", "billing-4", NOON)


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ([_RELEASE], 0),
        ([_TAKEN], 0),
        ([_RELEASE, _RELEASE, _TAKEN, _TAKEN], 1),
        ([_RELEASE, _TAKEN, _RELEASE, _TAKEN], 1),
        ([_RELEASE, _TAKEN, _BACK, _TAKEN_BACK], 2),
    ],
    ids=["not-taken", "release-not-received", "told-twice", "asked-again", "there-and-back"],
)
def test_each_hand_over_counts_once(received: Sequence[AnyAck], expected: int) -> None:
    moves = Moves()

    found = [move for ack in received for move in moves.feed([ack])]

    assert len(found) == expected


@pytest.mark.parametrize(
    ("member_id", "client_id"),
    [(_A, "billing-1"), ("no-uuid", "no-uuid"), ("a-1-x", "a-1-x")],
    ids=["by-a-broker", "short", "other"],
)
def test_client_id_is_within_the_member_id(member_id: str, client_id: str) -> None:
    assert client_of(member_id) == client_id


# Groups whose leader assigns the plan.

_PLAN = plan({_A: [7, 8], _B: []}, {_A: [8], _B: [7]}, epoch=2, topic="orders")
_APPLIED = Applied(**_SAID, member=_B)


def test_partition_of_an_applied_plan_has_moved_when_its_new_owner_says_so() -> None:
    moves = Moves()

    assert moves.feed([Applied(**_SAID, member=_A)], [_PLAN]) == ()
    (move,) = moves.feed([_APPLIED])

    assert (move.group_id, move.epoch, move.topic, move.partition) == ("billing", 2, "orders", 7)
    assert (move.from_client, move.to_client, move.at) == ("billing-1", "billing-4", NOON)


def test_plan_may_be_read_after_the_acknowledgement_and_counts_once() -> None:
    moves = Moves()

    assert moves.feed([_APPLIED]) == ()
    assert len(moves.feed([], [_PLAN])) == 1
    assert moves.feed([_APPLIED], [_PLAN]) == ()


def test_applied_plan_of_members_that_hand_over_adds_nothing() -> None:
    assert len(Moves().feed([_RELEASE, _TAKEN, _APPLIED], [_PLAN])) == 1
