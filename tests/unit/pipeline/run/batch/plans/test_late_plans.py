"""What was written down and not sent is sent late where configuration and orders of then still allow it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
import pytest

from pipeline.config.model import Config, GroupRule, PlanConfig
from pipeline.planning.state import FRESH, PlanState, to_json
from pipeline.publish.outbox import Publisher
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans import publication
from pipeline.run.batch.plans.publication import connect, publish_plans, why_unpublishable
from pipeline.run.driver import Driver
from pipeline.run.replay import FIRST_WRITTEN, Past
from tests.support.job.frames import NOW_MS, at
from tests.support.job.publishing import PUBLISHING, Cluster, Stored, table, unavailable

FORBIDDING = [
    {"config": Config(plan=PlanConfig(dry_run=True))},
    {"config": Config(plan=PlanConfig(dry_run="approve"))},
    {"config": Config(plan=PlanConfig(dry_run=False, groups=[GroupRule(pattern="g", exclude=True)]))},
    {"paused": ("g",)},
]
_IDS = ["dry run", "not approved", "excluded", "paused"]


def forbidding(driver: Driver, changes: dict[str, Any]) -> tuple[Driver, tuple[str, ...]]:
    config = changes.get("config", PUBLISHING)
    publisher = Publisher(
        {}, topic="control", cluster="local", timeout_s=1, is_dry=config.plan.dry_run is True
    )
    services = replace(driver.services, config=config, publisher=publisher)
    return replace(driver, services=services), changes.get("paused", ())


@pytest.mark.parametrize("changes", FORBIDDING, ids=_IDS)
def test_plan_that_was_not_sent_is_not_sent_where_it_would_not_be_made_any_more(
    cluster: Cluster, driver: Driver, changes: dict[str, Any]
) -> None:
    driver, paused = forbidding(driver, changes)

    assert unavailable(driver, table({}), paused=paused) is None

    assert cluster.sent == []
    assert (driver.memory.published["g"].epoch, driver.memory.published["g"].target_hash) == (3, "")


@pytest.mark.parametrize("changes", FORBIDDING, ids=_IDS)
def test_withdrawal_that_was_not_sent_is_sent_where_no_plan_is_made_any_more(
    cluster: Cluster, driver: Driver, changes: dict[str, Any]
) -> None:
    cluster.topic = {"g": 2}
    driver, paused = forbidding(driver, changes)

    unavailable(driver, table({"record": None, "target_hash": ""}), paused=paused)

    assert cluster.sent == [("g withdrawn", 3)]


def approved_state(*, epoch: int) -> str:
    """The memory of a group whose plan an operator has approved."""
    plan = PlanState(
        epoch=epoch,
        base_generation=4,
        target={},
        revoked={},
        moves=1,
        published_at_ms=NOW_MS,
        sent_at_ms=NOW_MS,
        valid_until_ms=NOW_MS + 60_000,
        lag=1,
        drain_s=None,
        status_at_ms=NOW_MS,
        approved_by="eva@desk",
    )
    return to_json(replace(FRESH, plan=plan))


def test_approved_plan_that_was_not_sent_is_sent(cluster: Cluster, driver: Driver) -> None:
    driver, _ = forbidding(driver, FORBIDDING[1])
    driver.memory.states["g"] = approved_state(epoch=3)

    unavailable(driver, table({}))

    assert cluster.sent == [("g", 3)]


def again(decided: Settled, changes: dict[str, Any]) -> tuple[Settled, Callable[[], str | None]]:
    """The batch that runs again, and the next one's question whether plans can be published."""
    decisions = decided.services.store.tables["plan_state"]
    stored = Stored(decisions=decisions, recorded=table(), paused=changes.get("paused", ()))
    services = replace(decided.services, store=stored, config=changes.get("config", PUBLISHING))
    driver = replace(decided.driver, services=services)
    batch = replace(decided, driver=driver, past=Past(stamps={FIRST_WRITTEN: decided.stamp}))
    assert batch.is_replay
    return batch, lambda: why_unpublishable(services, driver.memory)


@pytest.mark.parametrize("changes", [{}, FORBIDDING[1]], ids=["as before", "approved"])
def test_batch_that_runs_again_leaves_its_plan_to_the_next_one_which_has_read_orders(
    cluster: Cluster, decided: Settled, changes: dict[str, Any]
) -> None:
    batch, ask = again(decided, changes)

    assert publish_plans(batch, table({"epoch": 4, "state": approved_state(epoch=4)})) == 0
    assert cluster.sent == []

    assert ask() is None
    assert cluster.sent == [("g", 4)]
    assert batch.driver.memory.published["g"].target_hash == "target"


@pytest.mark.parametrize("changes", FORBIDDING, ids=_IDS)
def test_plan_of_a_batch_that_runs_again_is_not_sent_where_it_would_not_be_made_any_more(
    cluster: Cluster, decided: Settled, changes: dict[str, Any]
) -> None:
    batch, ask = again(decided, changes)
    publish_plans(batch, batch.services.store.tables["plan_state"].filter(pc.field("updated_at") == at(0)))

    assert ask() is None
    assert cluster.sent == []
    assert (batch.driver.memory.published["g"].epoch, batch.driver.memory.published["g"].target_hash) == (
        4,
        "",
    )


def test_driver_that_starts_sends_nothing_before_it_has_read_orders(cluster: Cluster, driver: Driver) -> None:
    recorded = table({}).append_column("created_at", table({})["recorded_at"])
    services = replace(driver.services, store=Stored(decisions=table(), recorded=recorded))

    assert connect(services, driver.memory) is None

    assert cluster.sent == []
    assert why_unpublishable(services, driver.memory) is None
    assert cluster.sent == [("g", 3)]


def test_plan_that_has_expired_before_orders_were_read_is_not_sent(
    cluster: Cluster, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = table({}).append_column("created_at", table({})["recorded_at"])
    services = replace(driver.services, store=Stored(decisions=table(), recorded=recorded))
    connect(services, driver.memory)
    monkeypatch.setattr(publication, "now_ms", lambda: NOW_MS + 60_000)

    assert why_unpublishable(services, driver.memory) is None
    assert cluster.sent == []


def test_withdrawal_that_was_not_sent_is_sent_whenever_it_was(cluster: Cluster, driver: Driver) -> None:
    cluster.topic = {"g": 2}

    unavailable(driver, table({"record": None, "target_hash": "", "valid_until": at(-1)}))

    assert cluster.sent == [("g withdrawn", 3)]
