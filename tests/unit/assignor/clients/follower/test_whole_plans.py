"""All of a plan or nothing: member a gives partition 1 to b, and b gives 2 to c; d keeps what it has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assigned,
    Commit,
    Committed,
    Event,
    Found,
    Look,
    Looked,
    Lost,
    PartitionKey,
    Phase,
    PlanSeen,
    Revoked,
    Write,
)
from assignor.protocol.acks import AnyAck, Applied, Follows, Refused, Release, Taken, Void
from assignor.protocol.control import ControlRecord
from tests.support.followers.follow_driver import P0, P1, P2, A, B, Driver, assigned, head, taken
from tests.support.followers.follow_plans import plan

C, D = "c", "d"
BASE = {A: [0, 1], B: [2], C: [3], D: [4]}
TARGET = {A: [0], B: [1], C: [2, 3], D: [4]}
CHAIN = plan(BASE, TARGET, epoch=5, generation=3)
OTHER_WAY = plan(BASE, {A: [0], B: [2], C: [1, 3], D: [4]}, epoch=6, generation=3)


class Group:
    """Four followers and their acks topic, which each of them reads when it is told to."""

    def __init__(self) -> None:
        self.topic: list[AnyAck] = []
        self.lost: list[AnyAck] = []
        """Acknowledgements that do not arrive."""
        self.committed: dict[PartitionKey, Found] = {}
        self._heard = Counter[str]()
        self.members = {name: Driver() for name in BASE}
        for name in BASE:
            self.assign(name)

    def assign(self, name: str) -> None:
        places = frozenset(("t", p) for p in BASE[name])
        self.do(name, Assigned(member=name, generation=3, places=places))

    def do(self, name: str, event: Event) -> None:
        """One event, and an answer to every request that comes of it."""
        actions: Sequence[Action] = self.members[name].do(event)
        written = [action.ack for action in actions if isinstance(action, Write)]
        self.topic += [ack for ack in written if ack not in self.lost]
        for commit in (action for action in actions if isinstance(action, Commit)):
            offsets = {place: offset or 70 for place, offset in commit.offsets.items()}
            self.committed |= {p: Found(offset=offsets[p], mark=mark) for p, mark in commit.marks.items()}
            self.do(name, Committed(accepted=True, offsets=offsets))

        for look in (action for action in actions if isinstance(action, Look)):
            found = {place: self.committed[place] for place in look.places if place in self.committed}
            self.do(name, Looked(found=found))

    def learn(self, *names: str, of: ControlRecord | None = CHAIN) -> None:
        """These members read the plan, or that there is none any more."""
        for name in names:
            self.do(name, PlanSeen(plan=of))

    def read(self, *names: str) -> None:
        """Each of them reads the topic to its end, all if none is named."""
        for name in names or self.members:
            new = tuple(self.topic[self._heard[name] :])
            self._heard[name] = len(self.topic)
            self.do(name, AcksSeen(acks=new))

    def read_all(self) -> None:
        """Until nobody has anything more to write."""
        while any(self._heard[name] < len(self.topic) for name in self.members):
            self.read()

    def said(self, kind: type[AnyAck]) -> set[tuple[str, int]]:
        """Who has said it, of which epoch."""
        return {(ack.member, ack.epoch) for ack in self.topic if isinstance(ack, kind)}

    def held(self) -> dict[str, list[int]]:
        return {name: sorted(p for _, p in driver.state.held) for name, driver in self.members.items()}


@pytest.fixture
def group() -> Group:
    return Group()


@pytest.mark.parametrize("silent", [A, B, C])
def test_nobody_gives_while_a_member_of_the_plan_is_silent_and_the_plan_expires(
    group: Group, silent: str
) -> None:
    others = [name for name in BASE if name != silent]
    group.learn(*others)
    group.read_all()
    assert group.held() == BASE

    group.learn(*others, of=None)
    group.read_all()

    assert group.said(Void) == {(name, 5) for name in others if name != D}
    assert not group.said(Release)
    assert group.held() == BASE
    assert {driver.state.phase for driver in group.members.values()} == {Phase.BASE}


@pytest.mark.parametrize("order", list(permutations([A, B, C])))
def test_all_moves_are_made_in_whatever_order_members_accept(group: Group, order: Sequence[str]) -> None:
    for name in order:
        assert group.held() == BASE
        group.learn(name)
        # Those who have not heard of the plan read the others' acceptances before their own.
        group.read()
    group.read_all()

    assert group.held() == TARGET
    assert group.said(Applied) == {(name, 5) for name in order}


def test_all_moves_are_made_without_a_member_that_keeps_what_it_has(group: Group) -> None:
    group.learn(A, B, C)
    group.read_all()

    assert group.held() == TARGET
    assert (D, 5) not in group.said(Follows)


@pytest.mark.parametrize("name", [A, B, C])
def test_nobody_gives_when_an_acceptance_was_lost_on_the_way(group: Group, name: str) -> None:
    group.lost.append(Follows(**head(name)))

    group.learn(A, B, C)
    group.read_all()

    assert group.held() == BASE


@pytest.mark.parametrize("said", [Refused, Void])
def test_member_that_follows_no_more_before_all_have_accepted_keeps_everybody_back(
    group: Group, said: type[Refused | Void]
) -> None:
    group.learn(B, C)
    group.topic.append(said(**head(C), why="…"))
    group.learn(A)
    group.read_all()

    assert group.held() == BASE


def test_old_owner_that_reads_at_once_that_all_accepted_and_one_has_ended_begins_as_the_others_did(
    group: Group,
) -> None:
    group.learn(A, B, C)
    group.read(B)
    assert group.said(Release) == {(B, 5)}

    group.topic.append(Void(**head(C), why="…"))
    group.read(A)

    assert group.said(Release) == {(A, 5), (B, 5)}


def test_nothing_is_given_to_a_new_owner_that_has_ended_though_all_had_accepted(group: Group) -> None:
    group.learn(A, B, C)
    group.topic.append(Void(**head(B), why="…"))

    group.read(A)

    assert not group.said(Release)


def test_old_owner_in_the_same_generation_again_gives_the_rest_without_waiting_for_all_again() -> None:
    old_owner = Driver()
    both = plan({A: [0, 1], B: [2], C: [3]}, {A: [], B: [1, 2], C: [0, 3]}, epoch=5, generation=3)
    old_owner.do(assigned(A), PlanSeen(plan=both))
    old_owner.hear(Follows(**head(A)), Follows(**head(B)), Follows(**head(C)), Void(**head(C), why="…"))
    old_owner.do(Committed(accepted=True, offsets={P1: 70}))
    old_owner.hear(taken(B, partition=1))

    old_owner.do(Revoked(), assigned(A), PlanSeen(plan=both))
    old_owner.hear(Void(**head(B), why="…"), Follows(**head(C)))

    assert old_owner.the(Commit).offsets == {P0: None}


def test_next_generation_waits_for_all_again() -> None:
    old_owner = Driver()
    old_owner.do(assigned(A), PlanSeen(plan=CHAIN))
    old_owner.hear(Follows(**head(A)), Follows(**head(B)), Follows(**head(C)))
    old_owner.do(Committed(accepted=True, offsets={P1: 70}), Lost())

    old_owner.do(assigned(A, generation=4), PlanSeen(plan=replace(CHAIN, base_generation=4, epoch=6)))
    old_owner.hear(*(Follows(**head(name, epoch=6, generation=4)) for name in (A, B)))

    assert old_owner.kinds() == []


def test_member_that_has_given_and_is_assigned_again_keeps_nobody_back(group: Group) -> None:
    group.learn(A, B, C)
    group.read(A)
    assert group.said(Release) == {(A, 5)}

    group.do(A, Revoked())
    group.assign(A)
    group.read_all()

    assert group.held() == TARGET
    assert group.said(Taken) == {(B, 5), (C, 5)}


def test_plan_that_is_replaced_while_some_have_accepted_is_not_begun_and_the_new_one_is(group: Group) -> None:
    group.learn(A, B)
    group.learn(C, of=OTHER_WAY)
    group.read_all()
    assert group.held() == BASE

    group.learn(A, of=OTHER_WAY)
    group.read_all()

    # In the new plan b keeps what it has.
    assert group.held() == {A: [0], B: [2], C: [1, 3], D: [4]}
    assert {epoch for _, epoch in group.said(Release)} == {6}


def test_partition_that_nobody_owns_has_no_token_so_its_plan_is_refused_by_all(group: Group) -> None:
    group.learn(A, B, of=plan(BASE, {**BASE, B: [2, 9]}, epoch=5, generation=3))
    group.read_all()

    assert group.said(Refused) == {(A, 5), (B, 5)}
    assert group.held() == BASE


def test_partition_that_the_plan_does_not_list_as_a_move_waits_for_its_new_owner() -> None:
    """A plan for the base, made before the partition came: its moves do not know that it has to go back."""
    member = Driver()
    member.do(
        assigned(B), PlanSeen(plan=plan({A: [0, 1], B: [2]}, {A: [0], B: [1, 2]}, epoch=5, generation=3))
    )
    member.hear(Release(**head(A), to=B, topic="t", partition=1, hop=1, offset=70))
    member.do(Committed(accepted=True, offsets={P1: 70}))
    back = plan({A: [0, 1], B: [2]}, {A: [0, 1], B: [2]}, epoch=6, generation=3)

    member.do(PlanSeen(plan=back))
    assert member.hear(Follows(**head(B, epoch=6))) == ()
    member.hear(Follows(**head(A, epoch=6)))

    assert member.the(Commit).offsets == {P1: None}
    assert member.state.held == {P2}
