"""Which groups are decided about before the others' turn, and what a decision on incomplete state may publish."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from assignor.protocol.commands import Orders
from pipeline.config.model import Config, PlanConfig
from pipeline.kafka.positions import Intake
from pipeline.planning.state import to_json
from pipeline.run.batch.plans import evaluation
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import NOW_MS
from tests.support.planning.alone import decide
from tests.support.planning.facts import RULES, group, partitions
from tests.support.planning.plan_walk import HALFWAY, walk

INCOMPLETE: dict[str, dict[str, Any]] = {
    "a partition is behind": {"behind": (7,), "reason": "partition 7 is behind"},
    "plans are held": {"held": "partition 0 of lagwise.acks cannot be read: no leader"},
}
each_incomplete = pytest.mark.parametrize("stamp", INCOMPLETE.values(), ids=INCOMPLETE.keys())
READ = {
    "orders": pa.table({"group_id": ["ordered"]}),
    "group": pa.table({"group_id": ["rebalanced"], "generation": [5], "position": [1]}),
}


def turns(*, waiting: tuple[str, ...] = (), is_once: bool = False, **stamp: Any) -> tuple[str, ...]:
    """Groups whose turn it is, after a batch with an order for one and a rebalance of another that took a plan."""
    took = walk()
    took.decide()
    took.held = HALFWAY
    took.decide(after_s=60)
    driver = idle_driver(config=Config(plan=PlanConfig(dry_run=False)), is_once=is_once)
    driver.memory.states = {"rebalanced": to_json(took.state)}
    driver.memory.waiting = waiting
    read: Any = SimpleNamespace(
        summary=SimpleNamespace(orders=1, group_records=1), decoded=SimpleNamespace(kind=READ.__getitem__)
    )
    batch = batch_of(driver, stamp=replace(stamp_of(at_ms=NOW_MS), **stamp))
    return evaluation._turns(replace(batch, read=read), is_due=False)


def test_groups_with_an_order_and_those_that_rebalanced_with_a_plan_come_before_those_that_wait() -> None:
    assert turns(waiting=("x", "ordered", "y")) == ("ordered", "rebalanced", "x", "y")


@each_incomplete
def test_group_with_an_order_does_not_wait_until_everything_is_read(stamp: dict[str, Any]) -> None:
    assert turns(waiting=("x",), **stamp) == ("ordered", "x")


def test_driver_that_runs_once_decides_about_all_groups_together() -> None:
    assert turns(is_once=True) == ()


@pytest.mark.parametrize(("left", "is_due"), [(0, True), (1, False)])
def test_driver_that_runs_once_plans_when_the_last_piece_of_acks_and_orders_is_read(
    left: int, is_due: bool
) -> None:
    batch = batch_of(idle_driver(is_once=True), intake=Intake(left=left))

    assert evaluation._is_plan_due(batch) == is_due


def test_order_for_a_group_whose_state_is_incomplete_publishes_a_withdrawal_at_most() -> None:
    known = walk()
    published = known.decide()
    behind = replace(group(known.held), provisional="partition 7 is behind")

    def decided(**orders: Any) -> tuple[str, str | None]:
        facts = replace(behind, orders=Orders(cluster="local", group="g", **orders))
        lags = partitions(known.lags, observed_at_ms=NOW_MS)
        decision = decide(facts, lags, RULES, known.published, known.state, now_ms=NOW_MS + 1000)
        return decision.decided, decision.record

    assert published.record is not None
    assert decided(paused=True) == ("publish", None)
    for order in ({"triggered_at_ms": NOW_MS}, {"resumed_at_ms": NOW_MS}, {"pinned": {"t": (3,)}}):
        assert decided(**order) == ("abstain", None)
