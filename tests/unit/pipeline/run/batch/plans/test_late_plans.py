"""What was written down and not sent is sent late where configuration and orders of then still allow it."""

from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
import pytest

from pipeline.config.model import Config, GroupRule, PlanConfig
from pipeline.planning.state import FRESH, PlanState, to_json
from pipeline.publish.outbox import Publisher
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans.publication import publish_plans
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


def test_batch_that_runs_again_from_before_its_decisions_sends_the_plan_that_was_approved(
    cluster: Cluster, decided: Settled
) -> None:
    past = Past(stamps={FIRST_WRITTEN: decided.stamp})
    driver, _ = forbidding(decided.driver, FORBIDDING[1])
    services = replace(driver.services, publisher=decided.services.publisher, store=decided.services.store)
    again = replace(decided, driver=replace(driver, services=services), past=past)
    assert (again.is_replay, again.driver.memory.states) == (True, {})

    assert publish_plans(again, table({"epoch": 4, "state": approved_state(epoch=4)})) == 1
    assert cluster.sent == [("g", 4)]


@pytest.mark.parametrize("changes", FORBIDDING, ids=_IDS)
def test_batch_that_runs_again_sends_no_plan_that_would_not_be_made_any_more(
    cluster: Cluster, decided: Settled, changes: dict[str, Any]
) -> None:
    driver, decisions = decided.driver, decided.services.store.tables["plan_state"]
    stored = Stored(decisions=decisions, recorded=table(), paused=changes.get("paused", ()))
    services = replace(driver.services, store=stored, config=changes.get("config", PUBLISHING))
    past = Past(stamps={FIRST_WRITTEN: decided.stamp})
    again = replace(decided, driver=replace(driver, services=services), past=past)
    assert again.is_replay

    assert publish_plans(again, decisions.filter(pc.field("updated_at") == at(0))) == 0
    assert cluster.sent == []


def test_withdrawal_that_was_not_sent_is_sent_whenever_it_was(cluster: Cluster, driver: Driver) -> None:
    cluster.topic = {"g": 2}

    unavailable(driver, table({"record": None, "target_hash": "", "valid_until": at(-1)}))

    assert cluster.sent == [("g withdrawn", 3)]
