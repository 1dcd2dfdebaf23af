"""The source without a job: its options, and how often it asks the leaders."""

from collections.abc import Mapping

import pytest

from pipeline.errors import ConfigError
from pipeline.kafka.positions import Answer, End, PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.source import alone
from pipeline.source.alone import AloneStreamReader, settings_alone
from pipeline.source.planner import Pace

BROKER = {"kafka.bootstrap.servers": "broker:9092"}


def test_leaders_are_asked_once_in_an_interval_however_often_spark_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, now = [], {"s": 0.0}

    def ask() -> Mapping[PartitionKey, Answer]:
        asked.append(now["s"])
        return {(OFFSETS_TOPIC, 0): End(log_start=0, stable=len(asked), high=len(asked))}

    monkeypatch.setattr(alone, "Pace", lambda interval_s: Pace(interval_s, clock_s=lambda: now["s"]))
    monkeypatch.setattr(alone, "EndsAsker", lambda *_args, **_more: ask)
    reader = AloneStreamReader(settings_alone(BROKER | {"interval_s": "2"}))

    seen = []
    for now["s"] in (0.0, 0.01, 1.9, 2.0, 2.01):
        seen.append(reader.latestOffset()[OFFSETS_TOPIC]["0"])

    assert (seen, asked) == ([1, 1, 1, 2, 2], [0.0, 2.0])


@pytest.mark.parametrize("given", ["0", "-1", "soon", "nan", "inf"])
def test_interval_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="option interval_s"):
        settings_alone(BROKER | {"interval_s": given})
