"""What users do with their consumer besides reading, and what becomes of it when partitions change hands."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    KafkaError,
    KafkaException,
)

from assignor.clients.confluent import NotOwnedError
from assignor.clients.confluent import commits as confluent_commits
from assignor.clients.follower.state import Phase
from assignor.errors import AssignorError
from assignor.protocol.acks import Follows, Refused, Release, Void
from tests.support.followers.follow_fakes import FakeMessage
from tests.support.followers.follow_setup import HEAD, Setup, at, offsets, release_of


def read(setup: Setup, *messages: FakeMessage) -> None:
    setup.consumer.fetched = list(messages)
    setup.follower.consume(len(messages), 0)


# Commits.


def test_foreign_partitions_of_a_batch_are_refused_alone(setup: Setup) -> None:
    setup.calls()

    with pytest.raises(NotOwnedError, match=r"t-7; the rest") as refused:
        setup.follower.commit(offsets=[at(0, 42), at(7, 9), at(1, 43)], asynchronous=False)

    assert setup.calls() == [("commit", {0: 42, 1: 43})]
    assert refused.value.places == (("t", 7),)


def test_handler_of_the_clients_errors_catches_a_commit_of_what_is_not_read(setup: Setup) -> None:
    with pytest.raises(KafkaException) as refused:
        setup.follower.commit(offsets=[at(7, 9)], asynchronous=False)

    error = refused.value.args[0]
    assert (error.code(), error.str()) == (KafkaError._STATE, str(refused.value))
    assert isinstance(refused.value, NotOwnedError)
    assert isinstance(refused.value, AssignorError)
    copied = copy.copy(refused.value)
    assert (copied.places, str(copied)) == ((("t", 7),), str(refused.value))


@pytest.mark.parametrize("asynchronous", [True, False])
def test_failed_commit_leaves_nothing_finished(following: Setup, asynchronous: bool) -> None:
    read(following, FakeMessage(1, 40))
    following.consumer.refuse_commits = True
    try:
        following.follower.commit(asynchronous=asynchronous)
    except KafkaException:
        assert not asynchronous
    following.poll()
    following.consumer.refuse_commits = False

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert release_of(following) == [40]


def test_hand_over_waits_for_the_answers_to_asynchronous_commits_and_others_are_read_meanwhile(
    following: Setup,
) -> None:
    read(following, FakeMessage(1, 40))
    following.consumer.answers_commits = False
    following.follower.commit()
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    following.calls()

    following.consumer.fetched = [FakeMessage(0, 40)]
    assert following.poll().partition() == 0
    assert (following.calls(), release_of(following)) == ([], [])
    following.consumer.answers_commits = True
    following.poll()
    following.poll()

    assert following.calls() == [("commit_async", {1: 41})]
    assert release_of(following) == [41]


def test_answer_to_an_earlier_commit_does_not_set_back_what_a_later_one_has_finished(
    following: Setup,
) -> None:
    read(following, FakeMessage(1, 40))
    following.consumer.answers_commits = False
    following.follower.commit()
    read(following, FakeMessage(1, 41))
    following.follower.commit(asynchronous=False)
    following.consumer.answers_commits = True
    following.poll()

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert release_of(following) == [42]


def test_own_callback_hears_of_own_commits_and_of_no_others() -> None:
    heard: list[dict[int, int]] = []
    setup = Setup(on_commit=lambda _error, partitions: heard.append(offsets(partitions)))
    setup.consumer.stored = {0: 40, 1: 40}
    setup.consumer.will("on_assign", [0, 1])
    setup.poll()
    setup.given(2)

    setup.poll()
    setup.follower.commit()
    setup.poll()

    assert heard == [{0: 40, 1: 40, 2: 70}]


def test_own_callback_hears_of_a_commit_that_is_answered_after_a_revocation() -> None:
    heard: list[dict[int, int]] = []
    setup = Setup(on_commit=lambda _error, partitions: heard.append(offsets(partitions)))
    setup.consumer.stored = {0: 40}
    setup.consumer.will("on_assign", [0])
    setup.poll()
    setup.consumer.answers_commits = False
    setup.follower.commit()
    setup.consumer.will("on_revoke")
    setup.consumer.will("on_assign", [0])
    setup.poll()
    setup.consumer.stored = {0: 35}

    setup.consumer.answers_commits = True
    setup.poll()

    assert heard == [{0: 40}]


def test_commit_of_a_hand_over_that_reaches_no_coordinator_is_sent_again(
    following: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_commits, "_AGAIN_AFTER_S", 0.0)
    following.consumer.silent = True
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    following.poll()
    assert release_of(following) == []

    following.consumer.silent = False
    following.poll()
    following.poll()

    assert release_of(following) == [40]
    assert not any(isinstance(ack, Void | Refused) for ack in following.topics.written)


def test_answer_that_comes_after_a_revocation_proves_nothing(following: Setup) -> None:
    following.consumer.answers_commits = False
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    following.consumer.will("on_revoke")
    following.poll()

    assert [ack.why for ack in following.topics.written if isinstance(ack, Void)] == ["commit refused"]
    assert following.follower.state.phase is Phase.OUT
    following.consumer.answers_commits = True
    following.consumer.generation = 2
    following.consumer.will("on_assign", [0, 1])
    following.poll()
    following.poll()

    assert release_of(following) == []
    assert len(following.follower.assignment()) == 2


# Seeking.


def test_seek_moves_the_position_and_commits_nothing(setup: Setup) -> None:
    setup.calls()

    setup.follower.seek(at(0, 7))

    assert setup.calls() == [("seek", {0: 7})]
    assert offsets(setup.follower.position([at(0), at(1), at(9)])) == {0: 7, 1: 40, 9: OFFSET_INVALID}


@pytest.mark.parametrize(
    ("logical", "offset"), [(OFFSET_BEGINNING, 5), (OFFSET_END, 95), (OFFSET_STORED, 40)]
)
def test_logical_offset_is_looked_up(setup: Setup, logical: int, offset: int) -> None:
    setup.follower.seek(at(0, logical))

    assert offsets(setup.follower.position([at(0)])) == {0: offset}


def test_offset_that_is_none_is_refused_and_the_position_stays(setup: Setup) -> None:
    with pytest.raises(KafkaException, match="cannot seek in t-0"):
        setup.follower.seek(at(0, OFFSET_INVALID))

    assert offsets(setup.follower.position([at(0)])) == {0: 40}


def test_seek_before_the_client_fetches_assigns_anew(setup: Setup) -> None:
    setup.consumer.refuse_seeks = True
    setup.calls()

    setup.follower.seek(at(0, 7))

    assert setup.calls() == [("assign", {0: 7, 1: 40})]


def test_seek_outlives_a_hand_over_of_another_partition(following: Setup) -> None:
    following.follower.seek(at(0, 7))
    following.calls()

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert following.calls() == [("pause", [1]), ("commit_async", {1: 40})]
    assert offsets(following.follower.position([at(0)])) == {0: 7}


def test_seek_is_not_handed_over(following: Setup) -> None:
    following.follower.seek(at(1, 7))

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert release_of(following) == [40]


@pytest.mark.parametrize(
    "call",
    [
        lambda follower: follower.seek(at(1, 7)),
        lambda follower: follower.pause([at(1)]),
        lambda follower: follower.resume([at(1)]),
        lambda follower: follower.commit(offsets=[at(1, 41)]),
    ],
    ids=["seek", "pause", "resume", "commit"],
)
def test_partition_that_is_being_handed_over_is_not_owned(
    following: Setup, call: Callable[[Any], Any]
) -> None:
    following.consumer.answers_commits = False
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    with pytest.raises(NotOwnedError, match="t-1"):
        call(following.follower)


# Pausing.


def test_pause_outlives_the_assignment_of_a_plan(setup: Setup) -> None:
    setup.follower.pause([at(0)])
    setup.calls()

    setup.given(2)
    setup.poll()

    assert setup.calls() == [
        ("commit_async", {2: 70}),
        ("assign", {0: 40, 1: 40, 2: 70}),
        ("pause", [0]),
    ]


def test_resumed_partition_stays_resumed(setup: Setup) -> None:
    setup.follower.pause([at(0), at(1)])
    setup.follower.resume([at(0)])
    setup.calls()

    setup.given(2)
    setup.poll()

    assert setup.calls()[-1] == ("pause", [1])


def test_paused_partition_is_handed_over_and_is_not_paused_when_it_comes_back(following: Setup) -> None:
    following.follower.pause([at(1)])
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    assert release_of(following) == [40]
    following.topics.offered = None
    following.poll()
    following.calls()

    following.given(1, hop=2)
    following.poll()

    assert following.calls() == [("commit_async", {1: 70}), ("assign", {0: 40, 1: 70}), ("resume", [1])]


def test_pause_ends_with_the_generation(setup: Setup) -> None:
    setup.follower.pause([at(0)])
    setup.consumer.generation = 2
    setup.consumer.will("on_revoke")
    setup.consumer.will("on_assign", [0])
    setup.calls()

    setup.poll()

    assert setup.calls() == [("unassign", None), ("assign", {0: 40}), ("resume", [0])]


# Trouble with the topics.


def test_outage_ends_following_and_the_next_plan_is_followed(following: Setup) -> None:
    following.topics.offered = None
    following.topics.outages += 1
    following.poll()
    assert [ack.why for ack in following.topics.written if isinstance(ack, Void)] == ["the topics are away"]
    assert [name for name, _ in following.calls()][-3:] == ["unsubscribe", "unassign", "subscribe"]


def test_release_that_did_not_arrive_makes_the_member_join_again_at_once(following: Setup) -> None:
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    following.calls()

    following.topics.undelivered = [ack for ack in following.topics.written if isinstance(ack, Release)]
    following.poll()

    assert [name for name, _ in following.calls()] == ["unsubscribe", "unassign", "subscribe"]
