"""A token function that fails in a task ends no query: what was to be read is told to be unread, with the cause."""

from types import ModuleType
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from pipeline.errors import BrokerUnavailableError
from pipeline.kafka import tokens
from pipeline.kafka.client import resolve
from pipeline.kafka.list_offsets import leaders
from pipeline.kafka.positions import Span
from pipeline.kafka.sources.log_offsets import ask
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share
from pipeline.kafka.sources.records.consumer import consume
from pipeline.kafka.sources.records.ends import EndsAsker
from pipeline.kafka.sources.records.settings import ReadSettings
from pipeline.kafka.tokens import ready

_PROPERTIES = {"bootstrap.servers": "127.0.0.1:9", "token_provider": "tokens_of_task:token"}
_CAUSE = "kafka.token_provider tokens_of_task:token failed: ValueError: no role"


def failing() -> None:
    raise ValueError("no role")


@pytest.fixture(autouse=True)
def _provider(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("tokens_of_task")
    module.token = failing  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
    monkeypatch.setattr(tokens, "_sources", {})
    monkeypatch.setattr(leaders, "_known", {})


def test_span_that_nobody_could_log_in_for_stays_unread_and_has_the_cause() -> None:
    span = Span(topic="t", partition=0, start=3, end=9)

    ((row,),) = consume([span], ReadSettings(properties=_PROPERTIES, timeout_s=5.0))

    assert isinstance(row, dict)
    assert row["position"] == 3
    assert row["error"].startswith(_CAUSE)


def test_log_ends_that_nobody_could_log_in_for_are_unknown_and_have_the_cause() -> None:
    settings = LogOffsetsSettings(
        properties=dict(_PROPERTIES),
        topics_include=(".*",),
        topics_exclude=(),
        isolation="read_uncommitted",
        request_timeout_s=5,
        splits=0,
    )

    rows: list[dict[str, Any]] = ask.ask(settings, Share(topics=(("t", (0, 1)),))).to_pylist()
    (listing,) = ask.shares(settings, tasks=2)

    assert [row["log_end_offset"] for row in rows] == [None, None]
    assert all(row["error"].startswith(_CAUSE) for row in rows)
    assert listing.error is not None
    assert _CAUSE in listing.error


def test_choice_of_a_batch_fails_with_the_cause_and_is_made_again_later() -> None:
    asker = EndsAsker(lambda: AdminClient(ready(resolve(_PROPERTIES))), ["t"], timeout_s=5)

    with pytest.raises(BrokerUnavailableError, match=f"cluster cannot be used: {_CAUSE}"):
        asker()
