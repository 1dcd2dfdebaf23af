"""When a poke's member joins, and with which properties; the integration tests show what Kafka does."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException

from pipeline.kafka import poke
from pipeline.kafka.poke import Outcome, Question, encode, outcome_of, refusal


def described(*members: str, kind: str = "CONSUMER", state: str = "STABLE") -> Any:
    """A group whose members have a partition each, but for the one that is named "poke"."""
    return SimpleNamespace(
        type=ConsumerGroupType[kind],
        state=ConsumerGroupState[state],
        members=[
            SimpleNamespace(
                member_id=name,
                client_id="lagwise-poke" if name == "poke" else "c",
                assignment=SimpleNamespace(topic_partitions=[] if name == "poke" else [("t", 0)]),
            )
            for name in members
        ],
    )


def test_group_with_the_members_of_the_plan_may_be_joined() -> None:
    assert refusal(described("a", "b", "idle"), ("a", "b")) is None


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (KafkaException(KafkaError(KafkaError.GROUP_ID_NOT_FOUND)), "the group is gone"),
        (described(state="DEAD"), "the group is gone"),
        (described(state="EMPTY"), "the group has no member any more"),
        (described("a", "b", kind="CLASSIC"), "the group no longer uses group.protocol=consumer"),
        (described("a", "b", kind="UNKNOWN"), "the group no longer uses group.protocol=consumer"),
        (described("a"), "members to which the plan gives partitions have left"),
        (
            described("a", "b", "poke"),
            "the member of a poke that was cut off is still in the group: the broker reassigns the group when it removes that member",
        ),
    ],
)
def test_other_group_is_not_joined(found: Any, why: str) -> None:
    assert refusal(found, ("a", "b")) == Outcome(why_not=why)


def test_consumer_with_the_client_id_of_the_poke_does_not_stop_it() -> None:
    found = described("a", "b")
    found.members[0].client_id = poke.CLIENT_ID

    assert refusal(found, ("a", "b")) is None


def test_group_is_not_joined_while_nobody_says_what_it_is() -> None:
    refused = refusal(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)), ("a",))

    assert refused is not None
    assert "rights" in (refused.error or "") or "deploying-security" in (refused.error or "")


def test_member_has_its_own_name_and_nothing_of_a_classic_member() -> None:
    given = {
        "client.id": "lagwise",
        "group.instance.id": "i",
        "session.timeout.ms": 1,
        "ssl.ca.location": "x",
    }

    made = poke._consumer_properties(given, "g")

    assert made["client.id"] == "lagwise-poke"
    assert made["allow.auto.create.topics"] == "false"
    assert {"group.instance.id", "session.timeout.ms"}.isdisjoint(made)
    assert made["ssl.ca.location"] == "x"


class Joining:
    """A consumer that its coordinator lets join after some polls."""

    def __init__(self, after: int) -> None:
        self.left = after

    def subscribe(self, _topics: list[str]) -> None:
        pass

    def poll(self, _timeout_s: float) -> None:
        self.left -= 1

    def memberid(self) -> str:
        return "own"


def test_member_that_an_earlier_poke_has_left_behind_is_not_taken_for_the_own_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(poke, "_LOOK_EVERY_S", 0.0)
    consumer: Any = Joining(after=3)

    def members() -> Any:
        found = described("a", "dead", *(("own",) if consumer.left <= 0 else ()))
        for one in found.members[1:]:
            one.client_id = poke.CLIENT_ID
        found.members[0].client_id = "app"
        return found

    assert poke._joined_and_left(consumer, members, until_s=time.monotonic() + 10) == Outcome()
    assert consumer.left == 0


def test_question_says_all_and_an_answer_that_breaks_off_is_none() -> None:
    question = Question(properties={"a": "b"}, group_id="g", members=("m",), deadline_s=3)

    assert '"deadline_s": 3' in encode(question)
    assert outcome_of("") is outcome_of('{"why') is outcome_of("[1]") is None
    assert outcome_of('{"why_not": null, "error": "e"}\n') == Outcome(error="e")


@pytest.mark.parametrize("name", ["", "a\0b"], ids=["no name", "NUL"])
def test_group_whose_name_librdkafka_cannot_take_is_not_joined(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(poke, "AdminClient", made.append)

    outcome = poke.poke(Question(properties={}, group_id=name, members=(), deadline_s=5))

    assert outcome == Outcome(error="Kafka's client cannot join a group of this name")
    assert made == []
