"""Waiting for topics that were created a moment ago."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.errors import BrokerUnavailableError
from pipeline.kafka import cluster


class Time:
    """A clock on which a look at the cluster takes a millisecond."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def monotonic(self) -> float:
        self._now_s += 0.001
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds


class Admin:
    """Lists no topic."""

    def __init__(self) -> None:
        self.looks = 0

    def list_topics(self, topic: str | None = None, *, timeout: float) -> Any:  # noqa: ARG002 - confluent_kafka's
        self.looks += 1
        return SimpleNamespace(topics={} if topic is None else {topic: SimpleNamespace(error=None)})


def test_topics_that_the_cluster_does_not_list_yet_are_looked_for_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "time", Time())
    admin: Any = Admin()

    with pytest.raises(BrokerUnavailableError, match="did not list topics plans within 2 s"):
        cluster._wait_for(admin, ("plans",), timeout_s=2)

    assert 2 < admin.looks < 30
