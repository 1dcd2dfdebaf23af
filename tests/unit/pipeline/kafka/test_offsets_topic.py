"""Whether the offsets topic can be read, according to the brokers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from pipeline.kafka import offsets_topic
from pipeline.kafka.offsets_topic import Access, access, access_now, ask
from pipeline.kafka.topic_configs import OFFSETS_TOPIC


class Admin:
    """Answers descriptions of the offsets topic one after another; the last answer is repeated."""

    def __init__(self, *answers: KafkaException | list[AclOperation] | None) -> None:
        self.answers = [*answers]

    def describe_topics(self, topics: Any, **how: Any) -> dict[str, "Future[Any]"]:
        assert how["include_authorized_operations"]
        future: Future[Any] = Future()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, KafkaException):
            future.set_exception(answer)
        else:
            future.set_result(SimpleNamespace(authorized_operations=answer))
        return dict.fromkeys(topics.topic_names, future)


def why(answer: KafkaException | list[AclOperation] | None, *, is_refused: bool = False) -> str | None:
    admin: Any = Admin(answer)
    return access(ask(admin, timeout_s=1), timeout_s=1, is_refused=is_refused).why_not


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


def test_refusal_counts_only_if_brokers_do_not_report_rights() -> None:
    assert why([AclOperation.READ], is_refused=True) is None

    found = why(None, is_refused=True)

    assert found is not None
    assert "was refused" in found
    assert OFFSETS_TOPIC in found


UNKNOWN = failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
READABLE = [AclOperation.READ]


@pytest.mark.parametrize(
    ("answers", "is_read", "slept"),
    [((UNKNOWN, READABLE), True, 1), ((READABLE, UNKNOWN), True, 0), ((UNKNOWN, UNKNOWN), False, 1)],
    ids=["unknown for a moment", "readable", "unknown"],
)
def test_topic_is_given_up_only_after_a_second_look(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[Any, ...], is_read: bool, slept: int
) -> None:
    sleeps: list[float] = []
    monkeypatch.setattr(offsets_topic.time, "sleep", sleeps.append)
    admin: Any = Admin(*answers)

    found = access_now(admin, timeout_s=1, is_refused=False)

    assert (found.why_not is None, len(sleeps)) == (is_read, slept)


def test_topic_is_only_tried_if_brokers_do_not_report_rights() -> None:
    unreported: Any = Admin(None)
    reported: Any = Admin(READABLE)

    assert access_now(unreported, timeout_s=1, is_refused=False) == Access(is_reported=False)
    assert access_now(reported, timeout_s=1, is_refused=True) == Access(is_reported=True)
