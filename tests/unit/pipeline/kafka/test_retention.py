"""How long topics keep their records: asked without waiting, a few at a time, and nothing is taken for an answer."""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource

from pipeline.kafka.retention import RetentionWatch, retention_ms_of

DAY_MS = 86_400_000
BY_TIME = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": str(DAY_MS)}
REFUSED, SILENT = KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._TIMED_OUT


def entries(**values: str | None) -> dict[str, ConfigEntry]:
    named = BY_TIME | {name.replace("_", "."): value for name, value in values.items()}
    return {name: ConfigEntry(name, value) for name, value in named.items()}


def test_records_that_time_alone_deletes_are_kept_for_that_long() -> None:
    assert retention_ms_of(entries()) == DAY_MS
    assert retention_ms_of(entries(retention_ms="0")) == 0


@pytest.mark.parametrize(
    "values",
    [
        {"cleanup_policy": "compact"},
        {"cleanup_policy": "compact,delete"},
        {"retention_bytes": "1000000"},
        {"retention_ms": "-1"},
        {"retention_ms": None},
        {"retention_bytes": None},
    ],
    ids=str,
)
def test_what_is_not_a_matter_of_a_known_time_is_unknown(values: dict[str, str | None]) -> None:
    assert retention_ms_of(entries(**values)) is None


@pytest.mark.parametrize("name", BY_TIME)
def test_configuration_that_is_not_named_is_unknown(name: str) -> None:
    left = {other: entry for other, entry in entries().items() if other != name}

    assert retention_ms_of(left) is None


class Admin:
    """Stands for an admin client; answers come when the test lets them.

    Attributes:
        asked: Topics of each call.
        now_s: Clock.
    """

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.now_s = 1000.0
        self._open: dict[str, Future[Any]] = {}

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float
    ) -> dict[ConfigResource, "Future[Any]"]:
        assert request_timeout > 0
        futures: dict[ConfigResource, Future[Any]] = {resource: Future() for resource in resources}
        self.asked.append(sorted(resource.name for resource in resources))
        self._open = {resource.name: future for resource, future in futures.items()}
        return futures

    def answer(
        self, *, failing: int | None = None, topics: Iterable[str] | None = None, **values: str
    ) -> None:
        for topic in list(self._open if topics is None else topics):
            future = self._open.pop(topic)
            if failing is None:
                future.set_result(entries(**values))
            else:
                future.set_exception(KafkaException(KafkaError(failing)))


@pytest.fixture
def admin() -> Admin:
    return Admin()


@pytest.fixture
def watch(admin: Admin) -> RetentionWatch:
    return RetentionWatch(cast("AdminClient", admin), clock=lambda: admin.now_s)


def test_answer_is_there_for_the_next_batch_and_asked_for_again_after_a_while(
    admin: Admin, watch: RetentionWatch
) -> None:
    assert watch(["t", "u"]) == {}
    assert watch(["t", "u"]) == {}
    admin.answer(topics=["t"])
    assert watch(["t", "u"]) == {"t": DAY_MS}
    admin.answer(retention_bytes="5")
    assert watch(["t", "u"]) == {"t": DAY_MS}
    assert admin.asked == [["t", "u"]]

    admin.now_s += 600
    watch(["t", "u"])
    admin.answer(retention_ms="5")

    assert watch(["t", "u"]) == {"t": 5, "u": 5}
    assert len(admin.asked) == 2


def test_many_topics_are_asked_about_in_turns(admin: Admin, watch: RetentionWatch) -> None:
    topics = [f"t{number:03}" for number in range(250)]

    for _ in range(6):
        watch(topics)
        admin.answer()

    assert [len(names) for names in admin.asked] == [100, 100, 50]
    assert len(watch(topics)) == 250


def test_topic_of_no_interest_any_more_is_forgotten(admin: Admin, watch: RetentionWatch) -> None:
    watch(["t"])
    admin.answer()
    assert watch(["t"]) == {"t": DAY_MS}

    assert watch(["u"]) == {}
    assert watch(["t"]) == {}
    assert admin.asked == [["t"], ["u"]]


def test_without_an_answer_the_last_one_stands_and_soon_it_is_asked_for_again(
    admin: Admin, watch: RetentionWatch
) -> None:
    watch(["t"])
    admin.answer()
    watch(["t"])
    admin.now_s += 600
    watch(["t"])
    admin.answer(failing=SILENT)

    assert watch(["t"]) == {"t": DAY_MS}
    assert len(admin.asked) == 2
    admin.now_s += 60
    watch(["t"])
    assert len(admin.asked) == 3


def test_question_that_never_ends_holds_up_no_other(admin: Admin, watch: RetentionWatch) -> None:
    watch(["t", "u"])
    admin.answer(topics=["t"])
    watch(["t", "u"])

    admin.now_s += 20
    watch(["t", "u"])
    admin.now_s += 60
    watch(["t", "u"])

    assert admin.asked == [["t", "u"], ["u"]]


def test_refusal_makes_it_unknown_is_said_once_and_rarely_tried_again(
    admin: Admin, watch: RetentionWatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch(["t", "u"])
    admin.answer()
    watch(["t", "u"])
    admin.now_s += 600
    watch(["t", "u"])
    admin.answer(failing=REFUSED)

    assert watch(["t", "u"]) == {}
    admin.now_s += 3000
    assert watch(["t", "u"]) == {}
    assert len(admin.asked) == 2
    (said,) = caplog.records
    assert "DescribeConfigs" in vars(said)["hint"]
    admin.now_s += 600
    watch(["t", "u"])
    assert len(admin.asked) == 3
