"""Listeners that raise, and what comes together: nothing is lost, read twice, or left behind."""

import math
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError

from assignor.clients.follower.state import FollowerState
from assignor.protocol.acks import Follows
from tests.support.followers.follow_fakes import FakeMessage
from tests.support.followers.follow_setup import HEAD, Setup


def fail(*_: object) -> None:
    raise ZeroDivisionError


def sent_long_ago(state: FollowerState) -> FollowerState:
    tokens = {place: replace(token, sent_s=token.sent_s - 200) for place, token in state.tokens.items()}
    return replace(state, tokens=tokens)


def poll_until_it_leaves(member: Setup) -> None:
    for _ in range(4):
        member.follower._steering.state = sent_long_ago(member.follower.state)
        member.poll()


def test_member_joins_again_when_its_listener_fails_as_it_leaves(following: Setup) -> None:
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    following.on_revoked = fail
    with pytest.raises(ZeroDivisionError):
        poll_until_it_leaves(following)

    following.poll()

    assert "subscribe" in [name for name, _ in following.calls()]


def test_message_that_comes_with_the_answer_to_a_commit_is_not_read_again(setup: Setup) -> None:
    setup.calls()
    setup.given(2)
    setup.consumer.fetched = [FakeMessage(0, 40)]

    assert setup.poll().offset() == 40
    setup.poll()

    assert setup.calls() == [("commit_async", {2: 70}), ("assign", {0: 41, 1: 40, 2: 70})]


def test_follower_is_closed_also_when_a_listener_fails(setup: Setup) -> None:
    setup.on_revoked = fail

    with pytest.raises(ZeroDivisionError):
        setup.follower.close()

    assert ("close", None) in setup.calls()
    assert setup.topics.closed == 1


def test_follower_that_is_given_partitions_as_it_closes_is_closed(setup: Setup) -> None:
    setup.consumer.will("on_revoke", [0, 1])
    setup.consumer.will("on_assign", [0, 2])

    setup.follower.close()

    assert setup.calls()[-1] == ("close", None)


def test_client_is_closed_once_its_call_that_called_the_closing_listener_has_returned(setup: Setup) -> None:
    closed_within: list[bool] = []

    def close() -> None:
        setup.follower.close()
        closed_within.append(("close", None) in setup.consumer.calls)

    setup.on_revoked = close
    setup.consumer.will("on_revoke", [0, 1])
    setup.poll()
    setup.follower.close()

    assert closed_within == [False]
    assert setup.calls().count(("close", None)) == setup.topics.closed == 1


def test_client_is_closed_once_its_call_that_called_the_closing_error_callback_has_returned() -> None:
    told: list[tuple[KafkaError, bool]] = []

    def close(error: KafkaError) -> None:
        setup.follower.close()
        told.append((error, ("close", None) in setup.consumer.calls))

    setup = Setup(error_cb=close)
    setup.consumer.problem = KafkaError(KafkaError._FATAL)
    setup.poll()

    assert told == [(KafkaError(KafkaError._FATAL), False)]
    assert setup.calls()[-1] == ("close", None)


def close_and_fail_on_revoked(setup: Setup) -> None:
    def close_and_fail() -> None:
        setup.follower.close()
        fail()

    setup.on_revoked = close_and_fail


def test_listener_that_closes_and_fails_leaves_no_client_behind(setup: Setup) -> None:
    close_and_fail_on_revoked(setup)
    setup.consumer.will("on_revoke", [0, 1])
    with pytest.raises(ZeroDivisionError):
        setup.poll()

    assert setup.calls()[-1] == ("close", None)


@pytest.mark.parametrize("calls", ["close", "close and poll"])
def test_listener_that_closes_again_closes_no_client_before_the_partitions_are_given_up(
    setup: Setup, calls: str
) -> None:
    def close_again() -> None:
        setup.follower.close()
        if calls == "close and poll":
            setup.poll()

    setup.on_revoked = close_again
    setup.calls()

    setup.follower.close()

    assert setup.calls() == [("unassign", None), ("close", None)]
    assert (setup.told[1:], setup.topics.closed) == ([("revoked", [0, 1])], 1)


def test_listener_that_closes_in_a_hand_over_closes_the_client_once(following: Setup) -> None:
    following.on_revoked = following.follower.close
    following.calls()
    following.topics.incoming = [Follows(**HEAD)]

    following.poll()

    assert [name for name, _ in following.calls()] == ["pause", "unassign", "close"]
    assert following.told[-2:] == [("revoked", [1]), ("revoked", [0])]


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_listener_that_closes_and_fails_leaves_no_client_behind_also_between_two_looks(
    setup: Setup, call: str
) -> None:
    close_and_fail_on_revoked(setup)
    setup.poll()
    setup.follower._delivered.calm_until_s = math.inf
    setup.consumer.will("on_revoke", [0, 1])

    with pytest.raises(ZeroDivisionError):
        getattr(setup.follower, call)(timeout=0)

    assert setup.calls()[-1] == ("close", None)
