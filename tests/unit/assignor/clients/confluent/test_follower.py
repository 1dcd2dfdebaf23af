from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from assignor.clients.confluent import NotOwnedError, TransactionsUnsupportedError
from assignor.clients.follower.state import Phase
from assignor.protocol.acks import Applied, Follows, Release, Taken, Void
from tests.support.followers.follow_fakes import FakeMessage
from tests.support.followers.follow_setup import HEAD, Setup


@pytest.mark.parametrize(("reset", "start"), [("earliest", 5), ("latest", 95)])
def test_partition_without_a_commit_starts_at_a_number(reset: str, start: int) -> None:
    setup = Setup(**{"auto.offset.reset": reset})
    setup.consumer.stored = {0: 40}
    setup.consumer.will("on_assign", [0, 1])

    setup.poll()

    assert setup.calls() == [("subscribe", ["t"]), ("assign", {0: 40, 1: start})]
    assert setup.told == [("gained", [0, 1])]


def test_hand_over_keeps_the_rest_where_it_is_and_commits_what_the_user_has_finished(
    following: Setup,
) -> None:
    following.consumer.fetched = [FakeMessage(0, 40)]
    following.poll()
    following.consumer.fetched = [FakeMessage(1, 40)]
    following.follower.commit(following.poll())
    following.consumer.fetched = [FakeMessage(1, 41)]
    following.poll()
    following.calls()

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert following.told[-1] == ("revoked", [1])
    assert following.calls() == [("pause", [1]), ("commit_async", {1: 41})]
    assert [(p.partition, p.offset) for p in following.follower.position([TopicPartition("t", 0)])] == [
        (0, 41)
    ]
    assert [ack.offset for ack in following.topics.written if isinstance(ack, Release)] == [41]


def test_listener_may_commit_what_is_about_to_go(following: Setup) -> None:
    following.consumer.fetched = [FakeMessage(1, 40)]
    following.poll()
    following.on_revoked = lambda: following.follower.commit(asynchronous=False)

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert following.calls() == [("commit", {0: 40, 1: 41}), ("pause", [1]), ("commit_async", {1: 41})]


def test_error_of_a_listener_reaches_the_user_and_the_hand_over_goes_on(following: Setup) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    following.on_revoked = fail
    following.topics.incoming = [Follows(**HEAD)]

    with pytest.raises(ZeroDivisionError):
        following.poll()
    following.poll()

    assert following.calls() == [("pause", [1]), ("commit_async", {1: 40})]


def test_refused_commit_gives_nothing_away(following: Setup) -> None:
    following.consumer.refuse_commits = True
    following.topics.incoming = [Follows(**HEAD)]

    following.poll()

    assert not any(isinstance(ack, Release) for ack in following.topics.written)
    assert following.follower.state.phase is Phase.OUT_PENDING


def test_released_partition_is_committed_and_read_from_the_offset_of_its_release(setup: Setup) -> None:
    setup.calls()
    setup.given(2)

    setup.poll()

    assert setup.calls() == [("commit_async", {2: 70}), ("assign", {0: 40, 1: 40, 2: 70})]
    assert setup.told[-1] == ("gained", [2])
    assert [type(ack) for ack in setup.topics.written] == [Follows, Taken, Applied]


def test_messages_of_partitions_that_are_gone_are_not_delivered(setup: Setup) -> None:
    setup.consumer.fetched = [FakeMessage(7, 1), FakeMessage(1, 40)]

    delivered = setup.follower.consume(5, 0)

    assert [message.partition() for message in delivered] == [1]


@pytest.mark.parametrize("how", ["message", "offsets"])
def test_commit_of_what_is_not_read_is_refused_and_not_sent(setup: Setup, how: str) -> None:
    setup.calls()
    given: Any = (
        {"message": FakeMessage(2, 9)} if how == "message" else {"offsets": [TopicPartition("t", 2, 9)]}
    )

    with pytest.raises(NotOwnedError, match="t-2"):
        setup.follower.commit(**given)

    assert setup.calls() == []


def test_commits_raise_after_a_loss_until_the_group_is_joined_again(setup: Setup) -> None:
    setup.consumer.will("on_lost", [0, 1])
    setup.poll()
    assert setup.told[-1] == ("lost", [0, 1])

    with pytest.raises(NotOwnedError, match="not in a generation"):
        setup.follower.commit()
    setup.consumer.generation = 2
    setup.consumer.will("on_assign", [0])
    setup.poll()
    setup.calls()
    setup.follower.commit()

    assert setup.calls() == [("commit_async", {0: 40})]


def test_failed_commit_of_the_user_is_the_users_to_handle(setup: Setup) -> None:
    setup.consumer.refuse_commits = True

    with pytest.raises(KafkaException):
        setup.follower.commit(asynchronous=False)


def test_revocation_tells_the_user_all_that_is_held_before_it_is_gone(following: Setup) -> None:
    following.given(2)
    following.poll()
    following.calls()
    following.on_revoked = lambda: following.follower.commit(asynchronous=False)

    following.consumer.will("on_revoke", [0, 1])
    following.poll()

    assert following.told[-1] == ("revoked", [0, 1, 2])
    assert following.calls() == [("commit", {0: 40, 1: 40, 2: 70}), ("unassign", None)]


def test_release_that_nobody_takes_makes_the_member_join_again(following: Setup) -> None:
    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    for _ in range(3):
        following.follower._steering.state = sent_long_ago(following.follower.state)
        following.poll()

    calls = [name for name, _ in following.calls()]
    assert calls[-3:] == ["unsubscribe", "unassign", "subscribe"]
    assert [ack.why for ack in following.topics.written if isinstance(ack, Void)] == [
        "a release was not taken"
    ]


def sent_long_ago(state: Any) -> Any:
    tokens = {place: replace(token, sent_s=token.sent_s - 200) for place, token in state.tokens.items()}
    return replace(state, tokens=tokens)


def test_close_tells_the_user_while_a_commit_still_counts(setup: Setup) -> None:
    setup.on_revoked = lambda: setup.follower.commit(asynchronous=False)
    setup.calls()

    setup.follower.close()
    setup.follower.close()

    assert setup.calls() == [("commit", {0: 40, 1: 40}), ("unassign", None), ("close", None)]
    assert setup.topics.closed == 1


def test_error_of_the_user_ends_the_membership_without_a_commit(setup: Setup) -> None:
    setup.on_revoked = lambda: setup.follower.commit(asynchronous=False)
    setup.calls()

    with pytest.raises(ZeroDivisionError), setup.follower:
        raise ZeroDivisionError

    assert setup.calls() == [("unassign", None), ("close", None)]


def test_offsets_do_not_go_into_the_transaction_of_a_producer(setup: Setup) -> None:
    producer = Mock(spec=Producer)

    with pytest.raises(TransactionsUnsupportedError, match="use a plain"):
        producer.send_offsets_to_transaction(
            setup.follower.assignment(), setup.follower.consumer_group_metadata()
        )

    producer.send_offsets_to_transaction.assert_not_called()


def test_work_that_is_done_later_is_committed_by_its_offsets_as_long_as_the_partition_is_read(
    following: Setup,
) -> None:
    """As by a user who processes in other threads: polled up to 42, done up to 41, and no more when asked to give up."""
    following.consumer.fetched = [FakeMessage(1, 40), FakeMessage(1, 41), FakeMessage(1, 42)]
    following.follower.consume(3, 0)
    following.on_revoked = lambda: following.follower.commit(
        offsets=[TopicPartition("t", 1, 42)], asynchronous=False
    )
    following.calls()

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert following.calls() == [("commit", {1: 42}), ("pause", [1]), ("commit_async", {1: 42})]
    with pytest.raises(NotOwnedError):
        following.follower.commit(offsets=[TopicPartition("t", 1, 43)])


def test_look_left_by_one_callback_is_given_up_when_another_has_ended_the_generation(setup: Setup) -> None:
    """The client runs both in one call; what is found after them is of a generation that is over."""
    setup.given(2)
    release = setup.topics.incoming.pop()
    setup.consumer.will("on_revoke")
    setup.poll()
    setup.topics.incoming = [release]
    setup.poll()
    setup.calls()
    setup.told.clear()

    setup.consumer.will("on_assign", [0, 1])
    setup.consumer.will("on_revoke")
    setup.poll()

    assert setup.calls() == [("assign", {0: 40, 1: 40}), ("unassign", None)]
    assert setup.told == [("gained", [0, 1]), ("revoked", [0, 1])]
    assert Taken not in [type(ack) for ack in setup.topics.written]


def test_member_in_doubt_of_its_commit_gives_up_all_when_kafka_revokes_before_it_can_leave(
    following: Setup,
) -> None:
    following.topics.incoming = [Follows(**HEAD)]
    following.consumer.answers_commits = False
    following.poll()
    following.calls()
    for what in ("on_revoke", "on_assign", "on_revoke"):
        following.consumer.will(what, [0, 1] if what == "on_assign" else [])

    following.poll()

    assert following.calls() == [("unassign", None), ("assign", {0: 40}), ("unassign", None)]
    assert following.follower.state.phase is Phase.OUT


def test_member_in_doubt_of_its_commit_leaves_the_generation_that_it_is_assigned_again(
    following: Setup,
) -> None:
    """Kafka may have taken the commit, and then partition 1 is another's as soon as that one looks."""
    following.topics.incoming = [Follows(**HEAD)]
    following.consumer.answers_commits = False
    following.poll()
    following.calls()
    following.consumer.will("on_revoke")
    following.consumer.will("on_assign", [0, 1])

    following.poll()
    following.poll()

    made = following.calls()
    assert ("assign", {0: 40}) in made
    assert made[-3:] == [("unsubscribe", None), ("unassign", None), ("subscribe", ["t"])]
