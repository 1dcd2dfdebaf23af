from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from assignor.protocol.acks import AnyAck, Applied, Follows, Release, Taken
from assignor.protocol.control import ControlRecord
from pipeline.operate.demo.moves import Moves, client_of
from pipeline.operate.demo.snapshot import Snapshot
from tests.support.followers.follow_plans import Places, plan
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


# KIP-848 groups, which the broker assigns.

_X, _Y = "Zm9vYmFyYmF6cXV4MTIzNA", "cXV1eHF1dXhxdXV4cXV1eA"
_CLIENTS = {_X: "refunds-1", _Y: "refunds-2"}


def _by_broker(base: Places, target: Places, *, epoch: int = 2) -> ControlRecord:
    made = plan(base, target, epoch=epoch, topic="returns", group="refunds")
    named = {name: replace(one, client=_CLIENTS[name]) for name, one in made.members.items()}
    return replace(made, group_protocol="consumer", members=named)


def _seen(owned: Places, *, after_s: float = 0.0) -> Snapshot:
    places = {("refunds", "returns", number): name for name, numbers in owned.items() for number in numbers}
    return Snapshot(groups=(), plans=(), seen_at=NOON + timedelta(seconds=after_s), owners=places)


_FIRST = _by_broker({_X: [0, 1, 2], _Y: [3]}, {_X: [0], _Y: [1, 2, 3]})


def test_partition_of_a_kip_848_group_has_moved_when_its_records_have_the_new_owner() -> None:
    moves = Moves()

    assert moves.feed([], [_FIRST]) == ()
    assert moves.saw(_seen({_X: [0, 1, 2], _Y: [3]})) == ()
    (first,) = moves.saw(_seen({_X: [0], _Y: [1, 3]}, after_s=5))
    (second,) = moves.saw(_seen({_X: [0], _Y: [1, 2, 3]}, after_s=10))

    assert (first.group_id, first.epoch, first.topic, first.partition) == ("refunds", 2, "returns", 1)
    assert (first.from_client, first.to_client) == ("refunds-1", "refunds-2")
    assert (second.partition, first.at, second.at) == (
        2,
        NOON + timedelta(seconds=5),
        NOON + timedelta(seconds=10),
    )


def test_move_of_a_kip_848_group_counts_once_though_its_plan_is_read_twice() -> None:
    moves, arrived = Moves(), _seen({_X: [0], _Y: [1, 2, 3]})
    moves.feed([], [_FIRST])

    assert len(moves.saw(arrived)) == 2
    assert moves.saw(arrived) == ()
    moves.feed([], [_FIRST])
    assert moves.saw(arrived) == ()


def test_what_a_replaced_plan_wanted_is_not_counted_when_it_comes_about_later() -> None:
    moves = Moves()
    moves.feed([], [_FIRST])
    moves.feed([], [_by_broker({_X: [0, 1, 2], _Y: [3]}, {_X: [1, 2], _Y: [0, 3]}, epoch=3)])

    found = moves.saw(_seen({_X: [], _Y: [0, 1, 2, 3]}))

    assert [(one.epoch, one.partition) for one in found] == [(3, 0)]


def test_owners_prove_no_move_of_a_classic_group_or_of_a_dry_run() -> None:
    moves = Moves()
    moves.feed([], [replace(_FIRST, group_protocol="classic"), replace(_FIRST, dry_run=True)])

    assert moves.saw(_seen({_X: [0], _Y: [1, 2, 3]})) == ()
    assert Moves().saw(Snapshot(groups=(), plans=(), seen_at=None)) == ()
