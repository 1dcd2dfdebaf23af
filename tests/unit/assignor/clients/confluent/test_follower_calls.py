"""Calls of a plain consumer that a follower answers in its own way: offsets by hand, topics anew, another login."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignor.clients.confluent import NotOwnedError
from assignor.protocol.acks import AnyAck, Follows, Refused
from tests.support.followers.follow_fakes import FakeMessage
from tests.support.followers.follow_setup import GIVES_1, Setup, at


def joined(**config: Any) -> Setup:
    setup = Setup(**config)
    setup.consumer.stored = {0: 40, 1: 40}
    setup.consumer.will("on_assign", [0, 1])
    setup.poll()
    setup.calls()
    return setup


def code_of(refused: pytest.ExceptionInfo[KafkaException]) -> int:
    return int(refused.value.args[0].code())


# Offsets that the user stores.


def test_bare_commit_commits_what_was_stored_and_once() -> None:
    setup = joined(**{"enable.auto.offset.store": False})
    setup.consumer.fetched = [FakeMessage(0, 50), FakeMessage(1, 60)]
    setup.follower.consume(2, 0)

    setup.follower.store_offsets(FakeMessage(0, 50))
    setup.follower.commit(asynchronous=False)

    assert setup.calls() == [("commit", {0: 51})]
    with pytest.raises(KafkaException, match="nothing was stored") as refused:
        setup.follower.commit(asynchronous=False)
    assert code_of(refused) == KafkaError._NO_OFFSET


def test_stored_offset_behind_a_later_commit_does_not_set_the_group_back() -> None:
    setup = joined(**{"enable.auto.offset.store": False})
    setup.follower.store_offsets(offsets=[at(0, 50), at(1, 60)])
    setup.follower.commit(offsets=[at(0, 55)], asynchronous=False)
    setup.calls()

    setup.follower.commit(asynchronous=False)

    assert setup.calls() == [("commit", {1: 60})]


def test_what_is_stored_goes_with_the_partition_and_is_refused_for_others() -> None:
    setup = joined(**{"enable.auto.offset.store": False})
    with pytest.raises(NotOwnedError) as refused:
        setup.follower.store_offsets(offsets=[at(0, 50), at(1, 60), at(7, 9)])
    assert refused.value.places == (("t", 7),)

    setup.follower._reading.assign(frozenset({("t", 0)}), {})
    setup.calls()
    setup.follower.commit(asynchronous=False)
    assert setup.calls() == [("commit", {0: 50})]

    setup.follower._reading.assign(frozenset({("t", 0), ("t", 1)}), {("t", 1): 45})
    with pytest.raises(KafkaException, match="nothing was stored"):
        setup.follower.commit(asynchronous=False)


def test_offsets_are_not_stored_by_two(setup: Setup) -> None:
    with pytest.raises(KafkaException, match=r"set enable\.auto\.offset\.store to False") as refused:
        setup.follower.store_offsets(FakeMessage(0, 50))

    assert code_of(refused) == KafkaError._INVALID_ARG


def test_storing_nothing_is_a_mistake() -> None:
    with pytest.raises(KafkaException, match="pass a message or offsets"):
        joined(**{"enable.auto.offset.store": False}).follower.store_offsets()


# Topics anew.


def test_other_topics_are_subscribed_with_the_listeners_that_are_given(setup: Setup) -> None:
    setup.calls()
    lost: list[Any] = []

    setup.follower.subscribe(["t", "u"], on_lost=lost.extend)
    assert setup.calls() == [("subscribe", ["t", "u"])]
    setup.consumer.will("on_revoke")
    setup.consumer.generation = 2
    setup.consumer.will("on_assign", [1])
    setup.poll()
    setup.consumer.will("on_lost")
    setup.poll()

    assert setup.told == [("gained", [0, 1]), ("revoked", [0, 1]), ("gained", [1])]
    assert [(place.topic, place.partition) for place in lost] == [("t", 1)]


def test_rejoin_of_a_follower_keeps_the_topics_that_were_subscribed_last(setup: Setup) -> None:
    setup.follower.subscribe(["u"])
    setup.calls()

    setup.follower._steering._rejoin()

    assert setup.calls()[-1] == ("subscribe", ["u"])


# Another login, static members.


def test_new_credentials_are_those_of_lagwises_topics_too(setup: Setup) -> None:
    setup.calls()

    setup.follower.set_sasl_credentials("me", "new")

    assert setup.calls() == [("credentials", ("me", "new"))]
    assert setup.topics.credentials == ("me", "new")


def test_static_member_is_told_at_its_start_that_it_follows_nothing_and_refuses_plans(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        setup = joined(**{"group.instance.id": "i"})

    setup.topics.offered = GIVES_1
    setup.poll()

    assert "unset group.instance.id" in caplog.text
    assert [(type(ack), ack.why) for ack in setup.topics.written] == [(Refused, "static")]


@pytest.mark.parametrize(("topics", "kind"), [(["t"], Refused), (["t", "u"], Follows), (["^[tu]$"], Follows)])
def test_plan_with_a_topic_that_the_member_does_not_subscribe_to_is_refused(
    setup: Setup, topics: list[str], kind: type[AnyAck]
) -> None:
    a, b = GIVES_1.members["a"], GIVES_1.members["b"]
    gives_u = {
        "a": replace(a, target={"t": (0, 1), "u": (0,)}),
        "b": replace(b, base={"t": (2,), "u": (0,)}, target={"t": (2,)}),
    }
    setup.follower.subscribe(topics)
    setup.topics.offered = replace(GIVES_1, members=gives_u)

    setup.poll()

    assert [type(ack) for ack in setup.topics.written] == [kind]


def test_topics_that_the_client_refuses_change_nothing(setup: Setup) -> None:
    before = setup.follower.state

    with pytest.raises(KafkaException):
        setup.follower.subscribe(["u", ""], on_revoked=lambda _: None)
    setup.consumer.will("on_revoke", [0, 1])
    setup.poll()
    setup.follower._steering.subscribe()

    assert setup.follower.state.settings == before.settings
    assert setup.told[-1] == ("revoked", [0, 1])
    assert setup.calls()[-1] == ("subscribe", ["t"])
