"""Records go straight from the client to the user while nothing else is to be done, and are counted all the same."""

from dataclasses import replace

import pytest
from confluent_kafka import KafkaError

from assignor.clients.follower.state import Phase
from tests.support.followers.follow_fakes import FakeMessage
from tests.support.followers.follow_plans import plan
from tests.support.followers.follow_setup import BASE, GIVES_1, Setup, at, offsets
from tests.support.waiting import wait_until

EOF = KafkaError(KafkaError._PARTITION_EOF)


def calm(setup: Setup) -> Setup:
    setup.poll()
    assert setup.follower._delivered.calm_until_s > 0
    setup.follower._delivered.calm_until_s = float("inf")
    setup.calls()
    return setup


def committed(setup: Setup) -> dict[int, int]:
    setup.calls()
    setup.follower.commit(asynchronous=False)
    ((_, offsets),) = setup.calls()
    return dict(offsets)


def test_nothing_but_the_client_is_asked_for_a_record_while_nothing_else_is_to_be_done(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm(setup)
    monkeypatch.setattr(setup.follower._steering, "step", lambda: pytest.fail("looked at the topics"))
    setup.consumer.fetched = [FakeMessage(0, 40), FakeMessage(1, 70)]

    read = [setup.follower.poll(1.0), setup.follower.poll(1.0)]

    assert [message.offset() for message in read] == [40, 70]
    assert committed(setup) == {0: 41, 1: 71}
    assert offsets(setup.follower.position([at(0), at(1)])) == {0: 41, 1: 71}


def test_nothing_but_the_client_is_asked_for_a_batch_while_nothing_else_is_to_be_done(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm(setup)
    monkeypatch.setattr(setup.follower._steering, "step", lambda: pytest.fail("looked at the topics"))
    setup.consumer.fetched = [FakeMessage(0, 40), FakeMessage(1, 70)]

    read = setup.follower.consume(500, 1.0)

    assert [message.offset() for message in read] == [40, 70]
    assert committed(setup) == {0: 41, 1: 71}


class Unseen:
    """A record whose methods nobody calls."""


def test_records_of_a_batch_are_not_looked_at_one_by_one(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm(setup)
    batch = [Unseen() for _ in range(500)]
    monkeypatch.setattr(setup.consumer, "consume", lambda _number, _timeout_s: batch)

    assert setup.follower.consume(500, 1.0) is batch


def test_record_of_a_partition_that_a_rebalance_takes_within_a_batch_is_not_handed_out(setup: Setup) -> None:
    calm(setup)
    setup.consumer.stored = {0: 50, 1: 60}
    setup.consumer.generation = 2
    setup.consumer.will("on_revoke")
    setup.consumer.will("on_assign", [1])
    setup.consumer.fetched = [FakeMessage(0, 49), FakeMessage(1, 60)]

    assert [message.partition() for message in setup.follower.consume(500, 1.0)] == [1]

    assert committed(setup) == {1: 61}


def test_plan_is_looked_for_in_time_while_records_keep_coming(setup: Setup) -> None:
    setup.poll()
    assert setup.follower._delivered.calm_until_s > 0
    setup.topics.offered = GIVES_1
    read: list[int] = []

    def follows_as_one_more_is_read() -> bool:
        setup.consumer.fetched = [FakeMessage(0, 40 + len(read))]
        message = setup.follower.poll(1.0)
        assert message is not None
        read.append(int(message.offset() or 0))
        return setup.follower.state.phase is Phase.FOLLOW

    wait_until(follows_as_one_more_is_read, what="the plan", within_s=5, every_s=0)

    assert committed(setup)[0] == read[-1] + 1


@pytest.mark.parametrize("is_calm", [True, False])
def test_error_in_a_batch_counts_as_no_record(setup: Setup, is_calm: bool) -> None:
    calm(setup)
    if not is_calm:
        setup.follower._delivered.take_back()
        # No look lets librdkafka count again.
        setup.follower._steering._looked_s = float("inf")
    setup.consumer.fetched = [FakeMessage(0, 40), FakeMessage(0, 41, EOF), FakeMessage(1, 40, EOF)]
    assert len(setup.follower.consume(3, 0)) == 3
    assert committed(setup) == {0: 41, 1: 40}

    setup.consumer.fetched = [FakeMessage(0, 41)]
    setup.follower.consume(3, 0)

    assert committed(setup) == {0: 42, 1: 40}
    assert (setup.follower._delivered.calm_until_s > 0) is is_calm


def test_count_of_the_client_from_before_a_seek_is_not_believed(setup: Setup) -> None:
    calm(setup)
    setup.consumer.fetched = [FakeMessage(0, 49)]
    setup.follower.poll(0)
    setup.consumer.forgets_positions = False
    setup.follower.seek(at(0, 7))
    setup.poll()
    assert committed(setup) == {0: 7, 1: 40}

    setup.consumer.forgets_positions = True
    setup.consumer.fetched = [FakeMessage(0, 7)]
    setup.poll()
    calm(setup)

    assert committed(setup) == {0: 8, 1: 40}


def test_rebalance_within_a_poll_starts_the_count_anew(setup: Setup) -> None:
    calm(setup)
    setup.consumer.fetched = [FakeMessage(0, 49)]
    setup.follower.poll(0)
    setup.consumer.stored = {0: 50, 1: 60}
    setup.on_revoked = lambda: setup.follower.commit(asynchronous=False)
    setup.consumer.generation = 2
    setup.consumer.will("on_revoke")
    setup.consumer.will("on_assign", [1])
    setup.consumer.fetched = [FakeMessage(1, 60)]

    assert setup.follower.poll(0) is not None

    assert ("commit", {0: 50, 1: 40}) in setup.calls()
    assert committed(setup) == {1: 61}


def test_record_that_a_rejoin_throws_away_is_not_committed(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm(setup)
    steering, poll = setup.follower._steering, setup.consumer.poll
    steering.state = replace(steering.state, phase=Phase.REJOIN)

    def revokes_next_time(timeout_s: float) -> FakeMessage | None:
        message: FakeMessage | None = poll(timeout_s)
        setup.consumer.will("on_revoke")
        return message

    monkeypatch.setattr(setup.consumer, "unsubscribe", lambda: None)
    monkeypatch.setattr(setup.consumer, "poll", revokes_next_time)
    setup.on_revoked = lambda: setup.follower.commit(asynchronous=False)
    setup.consumer.fetched = [FakeMessage(0, 49)]

    steering._rejoin()

    assert ("commit", {0: 40, 1: 40}) in setup.calls()


def test_hand_over_ends_the_calm_at_once(setup: Setup) -> None:
    calm(setup)
    # A check in between would find the counts equal and make librdkafka count again.
    setup.follower._steering._looked_s = float("inf")
    setup.topics.offered = plan(BASE, {"a": [1], "b": [0, 2]}, epoch=9, generation=1)

    setup.follower._reading.assign(frozenset({("t", 1)}), {})
    setup.consumer.fetched = [FakeMessage(0, 40), FakeMessage(1, 40)]

    assert [message.partition() for message in setup.follower.consume(2, 0)] == [1]
    assert committed(setup) == {1: 41}
