"""What is not known of a topic's configuration is unknown, said once with its cause, and asked for again."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource

from pipeline.config.model import ControlConfig
from pipeline.kafka.topic_configs import OFFSETS_TOPIC, TopicConfigs

CONTROL = ControlConfig(topic="control", acks_topic="acks", commands_topic="commands")
TOPICS = [OFFSETS_TOPIC, "acks", "commands", "control"]
SILENT, REFUSED = KafkaError._TIMED_OUT, KafkaError.TOPIC_AUTHORIZATION_FAILED


class Admin:
    """Stands for an admin client whose brokers answer, but for what `failing` says.

    Attributes:
        failing: Code of the error by topic; a number after it says how many questions get it.
        asked: Topics, in the order of the questions.
        listings: How often it was asked for topics.
    """

    def __init__(self, **failing: int) -> None:
        self.failing: dict[str, Iterator[int] | int] = {**failing}
        self.asked: list[str] = []
        self.listings = 0
        self.now_s = 100.0
        self.entries = {
            "delete.retention.ms": "7",
            "max.message.bytes": "2000000",
            "message.timestamp.type": "CreateTime",
        }

    def list_topics(self, *, timeout: float) -> None:
        assert timeout > 0
        self.listings += 1
        raise KafkaException(KafkaError(SILENT))

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float
    ) -> dict[ConfigResource, "Future[dict[str, ConfigEntry]]"]:
        assert request_timeout > 0
        (resource,) = resources
        self.asked.append(resource.name)
        future: Future[dict[str, ConfigEntry]] = Future()
        failing = self.failing.get(resource.name)
        code = failing if isinstance(failing, int) else next(failing, None) if failing else None
        if code is None:
            future.set_result({name: ConfigEntry(name, value) for name, value in self.entries.items()})
        else:
            future.set_exception(KafkaException(KafkaError(code)))
        return {resource: future}


def configs_of(admin: Admin) -> TopicConfigs:
    """After the first questions."""
    client = cast("Any | AdminClient", admin)
    configs = TopicConfigs(client, CONTROL, clock=lambda: admin.now_s)
    configs.ask_first(timeout_s=1)
    return configs


def warnings_about(caplog: pytest.LogCaptureFixture, topic: str) -> list[dict[str, Any]]:
    """Fields of the lines that call something of the topic unknown."""
    found = [record for record in caplog.records if "unknown" in vars(record)]
    return [vars(record) for record in found if vars(record)["topic"] == topic]


def test_silence_is_followed_by_another_question_to_whoever_is_named_then() -> None:
    admin = Admin()
    admin.failing["acks"] = iter([SILENT])

    configs = configs_of(admin)

    assert configs.tombstones_kept_ms("acks") == 7
    assert (admin.asked, admin.listings) == ([*TOPICS, "acks"], 1)


@pytest.mark.parametrize("code", [SILENT, KafkaError._TRANSPORT, KafkaError.NOT_CONTROLLER])
def test_broker_that_stays_silent_leaves_the_value_unknown_and_lacks_no_right(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    admin = Admin(**{OFFSETS_TOPIC: code})

    configs = configs_of(admin)

    assert configs.tombstones_kept_ms(OFFSETS_TOPIC) is None
    assert admin.asked == [*TOPICS, OFFSETS_TOPIC, OFFSETS_TOPIC]
    (said,) = warnings_about(caplog, OFFSETS_TOPIC)
    assert "the brokers did not answer" in said["message"]
    assert said["unknown"] == "delete.retention.ms"
    assert "deploying-security.md" not in str(said)


def test_what_was_not_answered_is_asked_for_again_with_each_batch_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admin = Admin(acks=SILENT)
    configs = configs_of(admin)
    first = len(admin.asked)

    for _ in range(3):
        configs.ask_again()
    before = configs.tombstones_kept_ms("acks")
    admin.failing.clear()
    configs.ask_again()
    configs.ask_again()

    assert (before, configs.tombstones_kept_ms("acks")) == (None, 7)
    assert admin.asked[first:] == ["acks"] * 4
    assert len(warnings_about(caplog, "acks")) == 1


def test_refusal_is_final_for_five_minutes_and_said_once_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admin = Admin(commands=REFUSED)

    configs = configs_of(admin)
    configs.ask_again()
    asked_soon = list(admin.asked)
    admin.now_s += 300
    configs.ask_again()

    assert configs.tombstones_kept_ms("commands") is None
    assert (asked_soon, admin.asked) == (TOPICS, [*TOPICS, "commands"])
    (said,) = warnings_about(caplog, "commands")
    assert "may not see" in said["message"]
    assert "DescribeConfigs" in said["hint"]


def test_right_that_was_granted_meanwhile_is_used() -> None:
    admin = Admin(acks=REFUSED)
    configs = configs_of(admin)

    admin.failing.clear()
    admin.now_s += 300
    configs.ask_again()

    assert configs.tombstones_kept_ms("acks") == 7


def test_advice_follows_the_first_answer(caplog: pytest.LogCaptureFixture) -> None:
    admin = Admin(acks=SILENT)
    configs = configs_of(admin)
    before = [record for record in caplog.records if "LogAppendTime" in record.message]

    admin.failing.clear()
    configs.ask_again()

    after = [record for record in caplog.records if "LogAppendTime" in record.message]
    assert (len(before), len(after)) == (0, 1)


def test_value_that_the_brokers_do_not_name_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    admin = Admin()
    del admin.entries["delete.retention.ms"]

    assert configs_of(admin).tombstones_kept_ms("commands") is None
    assert len(warnings_about(caplog, "commands")) == 1


@pytest.mark.parametrize(
    ("allowed", "largest"), [("3000000", 1_000_000), ("5096", 1000)], ids=["topic takes more", "takes less"]
)
def test_record_is_as_large_as_the_setting_and_the_topic_allow(allowed: str, largest: int) -> None:
    admin = Admin()
    admin.entries["max.message.bytes"] = allowed

    assert configs_of(admin).max_record_bytes == largest


def test_record_is_as_large_as_the_setting_allows_while_the_topic_is_unknown() -> None:
    assert configs_of(Admin(control=REFUSED)).max_record_bytes == CONTROL.max_record_bytes
