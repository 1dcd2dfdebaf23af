"""Acknowledgements that anybody may have written, and members that do not mark what they commit."""

import time
from dataclasses import replace

import pytest

from assignor.clients.follower.state import (
    Assign,
    Commit,
    Committed,
    Found,
    Look,
    Looked,
    Mark,
    Phase,
    PlanSeen,
    Write,
)
from assignor.protocol.acks import Accepted, Follows, Refused, Void
from assignor.protocol.marks import HandOverMark
from tests.support.followers.follow_driver import (
    MOVE_1,
    P1,
    P2,
    A,
    B,
    Driver,
    assigned,
    commit_of,
    head,
    mark_of,
    release,
    taken,
)

RELEASE = release(A, B, partition=1)
OLDER = "a does not mark its commits: replace it by version 0.2 or later"


def test_release_is_looked_at_before_anything_is_committed(new_owner: Driver) -> None:
    new_owner.hear_of_no_commit(RELEASE)

    assert new_owner.actions == (Look(places=frozenset({P1})),)


@pytest.mark.parametrize(
    "found",
    [
        Found(offset=70),
        Found(offset=-1001),
        Found(offset=70, mark=replace(mark_of(RELEASE), generation=2)),
        Found(offset=70, mark=replace(mark_of(RELEASE), epoch=4)),
        Found(offset=-1001, mark=mark_of(RELEASE)),
    ],
    ids=["no mark", "no commit", "another generation", "another plan", "mark without an offset"],
)
def test_release_of_what_no_commit_gives_to_this_member_moves_nothing(
    new_owner: Driver, found: Found
) -> None:
    new_owner.hear_of_no_commit(RELEASE)

    assert new_owner.do(Looked(found={P1: found})) == ()
    assert new_owner.state.held == {P2}
    assert not new_owner.state.waiting


def test_release_that_nobody_could_look_at_may_come_again(new_owner: Driver) -> None:
    new_owner.hear_of_no_commit(RELEASE)
    assert new_owner.do(Looked(found={})) == ()

    new_owner.hear(RELEASE)

    assert new_owner.the(Commit).offsets == {P1: 70}


def test_offset_and_hop_are_those_of_the_commit_whatever_the_record_says(new_owner: Driver) -> None:
    new_owner.hear_of_no_commit(release(A, B, partition=1, hop=9, offset=2900))
    new_owner.do(Looked(found={P1: commit_of(RELEASE)}))

    assert new_owner.the(Commit) == Commit(
        offsets={P1: 70}, marks={P1: replace(mark_of(RELEASE), kind="taken")}
    )
    new_owner.do(Committed(accepted=True, offsets={P1: 70}))
    assert new_owner.the(Assign).offsets == {P1: 70}
    assert taken(B, partition=1) in new_owner.written()


def test_release_by_a_plan_that_this_member_has_not_accepted_is_not_even_looked_at() -> None:
    member = Driver()
    member.do(assigned(B))

    assert member.hear_of_no_commit(RELEASE) == ()


def test_release_of_what_the_plan_gives_to_somebody_else_is_not_even_looked_at(new_owner: Driver) -> None:
    assert new_owner.hear_of_no_commit(release(A, B, partition=0)) == ()


def test_old_owner_marks_what_it_commits_with_plan_and_hop(old_owner: Driver) -> None:
    old_owner.hear(Follows(**head(B)))

    mark = HandOverMark(kind="release", generation=3, epoch=5, hop=1)
    assert old_owner.the(Commit) == Commit(offsets={P1: None}, marks={P1: mark})


def test_taken_is_believed_when_the_commit_is_no_longer_that_of_the_old_owner(released: Driver) -> None:
    released.hear_of_no_commit(taken(B, partition=1))
    assert released.actions == (Look(places=frozenset({P1})),)

    released.do(Looked(found={P1: commit_of(RELEASE)}))
    assert released.state.tokens[P1].mark is Mark.RELEASED

    released.hear_of_no_commit(taken(B, partition=1))
    released.do(Looked(found={P1: Found(offset=75)}))
    assert released.state.tokens[P1].mark is Mark.GONE


def test_same_release_twice_in_a_batch_is_answered_once(new_owner: Driver) -> None:
    new_owner.hear(RELEASE)
    new_owner.do(Committed(accepted=True, offsets={P1: 70}))

    new_owner.hear(RELEASE, RELEASE)

    assert new_owner.actions == (Write(ack=taken(B, partition=1)),)


def test_plan_that_needs_a_member_without_marks_is_voided_with_the_reason(new_owner: Driver) -> None:
    new_owner.hear(Follows(**head(B)), Accepted(**head(A)))

    assert new_owner.written() == [Void(**head(B), why=OLDER)]
    assert new_owner.state.phase is Phase.BASE
    assert new_owner.state.held == {P2}


def test_plan_that_needs_a_member_known_to_have_no_marks_is_refused_with_the_reason() -> None:
    member = Driver()
    member.do(assigned(B))
    member.hear(Accepted(**head(A)))

    member.do(PlanSeen(plan=MOVE_1))

    assert member.written() == [Refused(**head(B), why=OLDER)]


def test_nothing_is_given_to_a_member_without_marks(old_owner: Driver) -> None:
    old_owner.hear(Accepted(**head(B)))

    assert not [action for action in old_owner.actions if isinstance(action, Commit)]
    assert old_owner.state.phase is Phase.BASE


def test_member_without_marks_that_the_plan_does_not_need_keeps_nobody_back(old_owner: Driver) -> None:
    old_owner.hear(Accepted(**head("c")), Follows(**head(B)))

    assert old_owner.the(Commit).offsets == {P1: None}


def test_flood_of_forged_acknowledgements_holds_up_no_poll(new_owner: Driver) -> None:
    new_owner.hear(RELEASE)
    new_owner.do(Committed(accepted=True, offsets={P1: RELEASE.offset}))
    again = [replace(RELEASE, epoch=100 + number) for number in range(20_000)]
    members = [Follows(**head(f"m{number}")) for number in range(50_000)]
    begun_s = time.process_time()

    answers = new_owner.hear_of_no_commit(*again, *members)

    assert len(answers) == len(again)
    assert time.process_time() - begun_s < 10
