"""A coordinator that does not answer: what needs it waits, and nothing else does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from assignor.clients.confluent import commits as confluent_commits
from assignor.clients.confluent import offsets as confluent_offsets
from assignor.clients.confluent import reading as confluent_reading
from assignor.clients.confluent.offsets import Stored
from assignor.protocol.acks import Follows
from tests.support.followers.follow_fakes import FakeMessage
from tests.support.followers.follow_setup import HEAD, Setup, at, offsets, release_of


def test_partitions_wait_for_a_coordinator_that_does_not_say_where_they_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    setup = Setup()
    setup.consumer.stored = {0: 40, 1: 41}
    setup.consumer.silent = True
    setup.consumer.will("on_assign", [0, 1])

    for _ in range(3):
        setup.poll()
    assert setup.calls() == [("subscribe", ["t"]), ("assign", {})]
    assert offsets(setup.follower.assignment()) == {0: OFFSET_INVALID, 1: OFFSET_INVALID}
    setup.consumer.silent = False
    setup.follower._reading._ask_again_s = 0.0
    setup.poll()

    assert setup.calls() == [("assign", {0: 40, 1: 41})]
    assert len(caplog.records) == 1


def test_poll_waits_a_second_for_where_to_start_however_often_it_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = Setup()
    setup.consumer.silent = True
    setup.consumer.will("on_assign", [0])
    now_s, waits, again = 0.0, list[float](), list[float]()

    def committed(_: object, timeout: float) -> list[TopicPartition]:
        nonlocal now_s
        waits.append(timeout)
        now_s += timeout
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(setup.consumer, "committed", committed)
    monkeypatch.setattr(confluent_reading, "clock_s", lambda: now_s)
    monkeypatch.setattr(confluent_offsets, "clock_s", lambda: now_s)
    for _ in range(6):
        setup.poll()
        again.append(setup.follower._reading._ask_again_s - now_s)
        now_s += again[-1]

    assert waits == [1.0] * 6
    assert again == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def test_time_for_where_to_start_is_one_for_both_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = Setup()
    now_s, waits = 0.0, list[float]()

    def committed(partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        nonlocal now_s
        now_s += timeout - 0.25
        return [TopicPartition(p.topic, p.partition, OFFSET_INVALID) for p in partitions]

    def offsets_for_times(partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        waits.append(timeout)
        return partitions

    monkeypatch.setattr(confluent_offsets, "clock_s", lambda: now_s)
    monkeypatch.setattr(setup.consumer, "committed", committed)
    monkeypatch.setattr(setup.consumer, "offsets_for_times", offsets_for_times)
    setup.consumer.will("on_assign", [0])
    setup.poll()

    assert waits == [0.25]


def test_leaders_are_asked_together_and_in_the_next_turn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together, one silent leader fails the question; in parts, leaders that are all slow fail it."""
    setup, waits = Setup(), list[tuple[list[int], float]]()

    def offsets_for_times(asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        numbers = [one.partition for one in asked]
        waits.append((numbers, timeout))
        if 1 in numbers:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [TopicPartition("t", number, 95) for number in numbers]

    monkeypatch.setattr(confluent_offsets, "clock_s", lambda: 0.0)
    monkeypatch.setattr(setup.consumer, "offsets_for_times", offsets_for_times)
    setup.consumer.will("on_assign", [0, 1, 48])
    for _ in range(3):
        setup.follower._reading._ask_again_s = 0.0
        setup.poll()

    assert waits == [([0, 1, 48], 1.0), ([0, 48], 0.5), ([1], 1.0), ([1], 1.0)]
    assert [call for call in setup.calls() if call[0] == "assign"][-1] == ("assign", {0: 95, 48: 95})


def test_partition_that_has_not_started_is_not_handed_over(following: Setup) -> None:
    following.consumer.silent = True
    following.consumer.will("on_revoke")
    following.consumer.will("on_assign", [0, 1])
    following.topics.incoming = [Follows(**{**HEAD, "member": "a"})]
    following.poll()

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()

    assert release_of(following) == []


def test_partition_that_is_given_up_does_not_make_the_client_assign_the_others_again(
    following: Setup,
) -> None:
    """It would not fetch them before all commits are answered, and this coordinator answers none."""
    following.consumer.answers_commits = False
    following.consumer.fetched = [FakeMessage(0, 40)]
    following.poll()
    following.follower.commit()
    following.calls()

    following.topics.incoming = [Follows(**HEAD)]
    following.poll()
    following.consumer.fetched = [FakeMessage(1, 40), FakeMessage(0, 41)]
    delivered = following.follower.consume(5, 0)

    assert [call for call in following.calls() if "assign" in call[0]] == []
    assert [(message.partition(), message.offset()) for message in delivered] == [(0, 41)]


def test_seek_starts_a_partition_that_waits(setup: Setup) -> None:
    setup.consumer.silent = True
    setup.consumer.will("on_revoke")
    setup.consumer.will("on_assign", [0])
    setup.poll()
    setup.calls()

    setup.follower.seek(at(0, 7))

    assert setup.calls() == [("assign", {0: 7})]


@pytest.fixture
def stuck() -> Iterator[Callable[..., object]]:
    """A call that returns when the test is over."""
    over = threading.Event()
    yield lambda **_: over.wait()
    over.set()


def test_client_that_does_not_end_is_left_behind(
    setup: Setup,
    monkeypatch: pytest.MonkeyPatch,
    stuck: Callable[..., object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    setup.follower._close_within_s = 0.01
    monkeypatch.setattr(setup.consumer, "close", stuck)

    setup.follower.close()

    assert "abandoned" in caplog.text
    assert (setup.told[-1], setup.topics.closed) == (("revoked", [0, 1]), 1)


@pytest.mark.parametrize("suppressed", [(), (KafkaException,)], ids=["raised", "suppressed"])
def test_listener_that_commits_into_a_client_that_never_answers_does_not_hold_up_the_end(
    setup: Setup,
    monkeypatch: pytest.MonkeyPatch,
    stuck: Callable[..., object],
    caplog: pytest.LogCaptureFixture,
    suppressed: tuple[type[Exception], ...],
) -> None:
    """A call of this client waits for the one before, so nothing else may be called then."""

    def commit() -> None:
        with suppress(*suppressed):
            setup.follower.commit(asynchronous=False)

    monkeypatch.setattr(confluent_commits, "_ANSWERED_WITHIN_S", 0.01)
    for name in ("commit", "unassign", "close"):
        monkeypatch.setattr(setup.consumer, name, stuck)
    setup.on_revoked = commit

    with nullcontext() if suppressed else pytest.raises(KafkaException, match="no answer within"):
        setup.follower.close()

    assert "abandoned" in caplog.text
    assert setup.follower._reading.commits.finished.get(("t", 0), Stored(40)) == Stored(40)
    assert setup.topics.closed == 1


def test_synchronous_commit_in_a_rebalance_is_made_by_the_thread_that_polls(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client serves one thread at a time: another would wait for the call that has called the listener."""
    threads: list[threading.Thread] = []
    monkeypatch.setattr(setup.consumer, "commit", lambda **_: threads.append(threading.current_thread()))
    setup.on_revoked = lambda: setup.follower.commit(asynchronous=False)

    setup.consumer.will("on_revoke")
    setup.poll()

    assert threads == [threading.current_thread()]
