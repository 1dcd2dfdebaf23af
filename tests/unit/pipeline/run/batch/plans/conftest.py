"""A driver with a played control topic, and a batch that has decided."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pipeline.planning.memory import PlanInTopic
from pipeline.planning.rows import kept
from pipeline.publish import outbox
from pipeline.publish.outbox import Publisher
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans import late
from pipeline.run.driver import Driver
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import NOW_MS, at
from tests.support.job.publishing import PUBLISHING, Cluster, PlayedProducer, Stored, table, unavailable


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    played = Cluster()

    def plans(_self: Publisher) -> dict[str, PlanInTopic]:
        if isinstance(played.topic, Exception):
            raise played.topic
        return {group: PlanInTopic(epoch, NOW_MS + 60_000) for group, epoch in played.topic.items()}

    monkeypatch.setattr(outbox, "Producer", lambda _properties, logger: PlayedProducer(played))  # noqa: ARG005
    monkeypatch.setattr(Publisher, "_plans_in_topic", plans)
    monkeypatch.setattr(outbox, "time", SimpleNamespace(monotonic=lambda: played.now_s))
    monkeypatch.setattr(late, "now_ms", lambda: NOW_MS)
    return played


@pytest.fixture
def driver() -> Driver:
    publisher = Publisher({}, topic="control", cluster="local", timeout_s=1)
    return idle_driver(publisher=publisher, store=SimpleNamespace(), config=PUBLISHING)


@pytest.fixture
def decided(driver: Driver) -> Settled:
    """A batch that has written down a plan and something else, with others' rows beside them."""
    rows = table(
        {"epoch": 4, "state": "of g"},
        {"group_id": "h", "decision": "unchanged", "state": "of h", "recorded_at": at(-60)},
        {"group_id": "i", "state": "of an earlier batch", "updated_at": at(-60), "recorded_at": at(-60)},
    )
    assert unavailable(driver, table()) is None
    stored = Stored(decisions=rows, recorded=kept.history(table()))
    services = replace(driver.services, store=stored)
    return batch_of(replace(driver, services=services), stamp=stamp_of(at_ms=NOW_MS))
