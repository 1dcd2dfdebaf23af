"""What comes of a question, and when it is asked again."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigEntry

from pipeline.kafka import asking
from pipeline.kafka.asking import Asked, answer, in_words, outcome_of, values_of

REFUSED = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
SILENT = KafkaException(KafkaError(KafkaError._TRANSPORT))


def test_question_that_the_client_has_forgotten_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_GRACE_S", 0.01)

    with pytest.raises(KafkaException) as failure:
        answer(Future[int](), 0)

    assert failure.value.args[0].code() == KafkaError._TIMED_OUT


def test_only_a_right_that_is_missing_is_a_refusal_and_its_words_say_where_rights_are_listed() -> None:
    assert [outcome_of(one) for one in (REFUSED, SILENT, ValueError("x"))] == ["refused", "silent", "silent"]
    assert ["deploying-security.md lists the rights" in in_words(one) for one in (REFUSED, SILENT)] == [
        True,
        False,
    ]


def test_value_that_the_brokers_keep_or_do_not_name_is_not_there() -> None:
    entries = {"a": ConfigEntry("a", "1"), "secret": ConfigEntry("secret", None)}

    assert values_of(entries, ("a", "secret", "unnamed")) == {"a": "1"}


def test_question_is_due_when_its_outcome_has_stood_long_enough_and_the_longest_due_comes_first() -> None:
    now_s = [100.0]
    asked = Asked({"known": 60.0, "refused": 300.0}, clock=lambda: now_s[0])
    asked.note("known", "known")
    asked.note("refused", "refused")
    asked.note("silent", "silent")

    assert asked.due(["known", "refused", "silent", "new"]) == ["new", "silent"]
    now_s[0] += 300
    assert asked.due(["refused", "known"]) == ["known", "refused"]


def test_outcome_before_is_known_until_the_question_is_of_no_interest() -> None:
    asked = Asked()

    assert (asked.note("t", "refused"), asked.note("t", "silent"), asked.has_refusal) == (
        None,
        "refused",
        False,
    )
    asked.note("u", "refused")
    asked.keep_only(["t"])

    assert (asked.has_refusal, asked.note("t", "known"), asked.note("u", "known")) == (False, "silent", None)
