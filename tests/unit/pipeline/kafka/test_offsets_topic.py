"""Whether the offsets topic can be read, according to the brokers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from pipeline.kafka.offsets_topic import ask, why_unreadable
from pipeline.kafka.topic_configs import OFFSETS_TOPIC


class Admin:
    """Answers every description of the offsets topic in the same way."""

    def __init__(self, answer: KafkaException | list[AclOperation] | None) -> None:
        self._answer = answer

    def describe_topics(self, topics: Any, **how: Any) -> dict[str, "Future[Any]"]:
        assert how["include_authorized_operations"]
        future: Future[Any] = Future()
        if isinstance(self._answer, KafkaException):
            future.set_exception(self._answer)
        else:
            future.set_result(SimpleNamespace(authorized_operations=self._answer))
        return dict.fromkeys(topics.topic_names, future)


def why(answer: KafkaException | list[AclOperation] | None) -> str | None:
    admin: Any = Admin(answer)
    return why_unreadable(ask(admin, timeout_s=1), timeout_s=1)


def failed(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (failed(KafkaError.TOPIC_AUTHORIZATION_FAILED), "may not describe"),
        (failed(KafkaError.UNKNOWN_TOPIC_OR_PART), "the brokers report no topic"),
        ([AclOperation.DESCRIBE], "but not read it"),
    ],
)
def test_topic_that_is_hidden_unknown_or_not_to_be_read_says_why(answer: Any, said: str) -> None:
    found = why(answer)

    assert found is not None
    assert OFFSETS_TOPIC in found
    assert said in found


@pytest.mark.parametrize(
    "answer", [[AclOperation.READ, AclOperation.DESCRIBE], None], ids=["allowed", "not said"]
)
def test_topic_can_be_read_unless_brokers_say_otherwise(answer: Any) -> None:
    assert why(answer) is None


def test_brokers_that_do_not_answer_say_nothing_of_it() -> None:
    with pytest.raises(KafkaException):
        why(failed(KafkaError._TIMED_OUT))
