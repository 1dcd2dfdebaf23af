"""What was written down and not sent is sent late where orders, configuration and its own state still allow it."""

from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
import pytest

from pipeline.config.model import Config, GroupRule, GuardsConfig, PlanConfig
from pipeline.errors import TopicMissingError
from pipeline.planning.state import FRESH, PlanState, to_json
from pipeline.publish.outbox import Publisher
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans import late, publication
from pipeline.run.batch.plans.late import connect, send_late
from pipeline.run.batch.plans.publication import publish_plans
from pipeline.run.driver import Driver
from pipeline.run.replay import FIRST_WRITTEN, Past
from tests.support.job.batches import CONTROL, batch_of, stamp_of
from tests.support.job.frames import NOW_MS, arrow, at, member
from tests.support.job.publishing import AWAY, PUBLISHING, Cluster, Stored, failure, left_behind, table
from tests.support.planning.broker_walk import BrokerWalk
from tests.support.planning.plan_walk import walk

FORBIDDING: dict[str, dict[str, Any]] = {
    "dry run": {"config": Config(plan=PlanConfig(dry_run=True))},
    "not approved": {"config": Config(plan=PlanConfig(dry_run="approve"))},
    "excluded": {
        "config": Config(plan=PlanConfig(dry_run=False, groups=[GroupRule(pattern="g", exclude=True)]))
    },
    "pinned by file": {"config": Config(plan=PlanConfig(dry_run=False, guards=GuardsConfig(pin=("t",))))},
    "paused": {"paused": ("g",)},
    "pinned": {"pinned": ("g",)},
    "resumed since": {"resumed": ("g",)},
    "superseded": {"status": "superseded"},
}
each_forbidding = pytest.mark.parametrize("changes", FORBIDDING.values(), ids=FORBIDDING.keys())
FOR_BROKER, FOR_MEMBERS = BrokerWalk().decide().record or "", walk().decide().record or ""
WITHDRAWAL = {"record": None, "target_hash": ""}


def state_of(*, epoch: int = 3, status: Any = "open", approved_by: str | None = None) -> str:
    """The memory of a group with such a plan."""
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
        status=status,
        status_at_ms=NOW_MS,
        approved_by=approved_by,
    )
    return to_json(replace(FRESH, plan=plan))


def as_changed(driver: Driver, changes: dict[str, Any], plans: Any) -> Driver:
    """The driver after a start with these changes, and with such plans in its tables."""
    config = changes.get("config", PUBLISHING)
    publisher = Publisher(
        {}, topic="control", cluster="local", timeout_s=1, is_dry=config.plan.dry_run is True
    )
    driver = replace(driver, services=replace(driver.services, config=config, publisher=publisher))
    driver.memory.states["g"] = state_of(status=changes.get("status", "open"))
    orders = {name: changes[name] for name in ("paused", "pinned", "resumed") if name in changes}
    return left_behind(driver, plans, **orders)


def send(driver: Driver, *, is_replay: bool = False, **held: Any) -> None:
    """The step of a batch, which has not read all orders if it is held or runs again."""
    stamp = stamp_of(at_ms=NOW_MS, **held)
    batch = batch_of(driver, stamp=stamp)
    send_late(replace(batch, past=Past(stamps={FIRST_WRITTEN: stamp})) if is_replay else batch)


def known(driver: Driver) -> tuple[int, str]:
    plan = driver.memory.published["g"]
    return plan.epoch, plan.target_hash


def after_pause(driver: Driver) -> tuple[str, int | None, str | None]:
    """What is decided about the group once it is paused."""
    group = walk()
    group.published = driver.memory.published["g"]
    group.order(paused=True)
    decision = group.decide(after_s=1)
    return decision.decided, decision.epoch, decision.record


def test_plan_that_was_not_sent_is_sent(cluster: Cluster, driver: Driver) -> None:
    driver = left_behind(driver, table({}))

    send(driver)

    assert (cluster.sent, known(driver)) == ([("g", 3)], (3, "target"))


@each_forbidding
def test_plan_that_was_not_sent_is_not_sent_where_it_would_not_be_made_any_more(
    cluster: Cluster, driver: Driver, changes: dict[str, Any]
) -> None:
    driver = as_changed(driver, changes, table({}))

    send(driver)

    assert (cluster.sent, known(driver)) == ([], (3, ""))


FOLLOWED = GroupRule(pattern="g|h", follow="broker")
PLAIN = GroupRule(pattern="g")


@pytest.mark.parametrize(
    ("record", "rule", "is_sent"),
    [
        (FOR_BROKER, FOLLOWED, True),
        (FOR_BROKER, PLAIN, False),
        (FOR_MEMBERS, PLAIN, True),
        ("{}", PLAIN, False),
        ("{}", FOLLOWED, False),
    ],
    ids=["broker follows", "follow removed", "for members", "unreadable", "unreadable for a broker"],
)
def test_plan_that_was_not_sent_is_sent_only_to_a_reader_that_the_configuration_still_names(
    cluster: Cluster, driver: Driver, record: str, rule: GroupRule, is_sent: bool
) -> None:
    config = Config(plan=PlanConfig(dry_run=False, groups=[rule]))
    driver = as_changed(driver, {"config": config}, table({"record": record}))

    send(driver)

    assert cluster.sent == ([("g", 3)] if is_sent else [])


def test_plan_that_was_not_sent_is_not_sent_to_a_broker_that_could_apply_it_to_another_group(
    cluster: Cluster, driver: Driver
) -> None:
    config = Config(plan=PlanConfig(dry_run=False, groups=[FOLLOWED]))
    driver = as_changed(driver, {"config": config}, table({"record": FOR_BROKER}))
    alike = [{"group_id": name, "group_type": "consumer", "members": [member("a")]} for name in ("g", "h")]
    stored: Any = driver.services.store
    stored.tables["consumer_groups"] = arrow("consumer_groups", *alike)

    send(driver)

    assert (cluster.sent, known(driver)) == ([], (3, ""))


@each_forbidding
def test_withdrawal_that_was_not_sent_is_sent_where_no_plan_is_made_any_more(
    cluster: Cluster, driver: Driver, changes: dict[str, Any]
) -> None:
    cluster.topic = {"g": 2}
    driver = as_changed(driver, changes, table(WITHDRAWAL))

    send(driver)

    assert cluster.sent == [("g withdrawn", 3)]


def test_approved_plan_that_was_not_sent_is_sent(cluster: Cluster, driver: Driver) -> None:
    driver = as_changed(driver, FORBIDDING["not approved"], table({}))
    driver.memory.states["g"] = state_of(approved_by="eva@desk")

    send(driver)

    assert cluster.sent == [("g", 3)]


@pytest.mark.parametrize(
    "unread",
    [
        {"held": "orders are not read to their end yet"},
        {"held_acks": {CONTROL.acks_topic: "it is not read to its end yet"}},
        {"is_replay": True},
    ],
)
def test_plan_waits_until_orders_have_been_read_and_a_withdrawal_does_not(
    cluster: Cluster, driver: Driver, unread: dict[str, Any]
) -> None:
    cluster.topic = {"w": 2}
    driver = left_behind(driver, table({}, {"group_id": "w", **WITHDRAWAL}))
    assert connect(driver.services, driver.memory) is None
    assert cluster.sent == []

    send(driver, **unread)
    send(driver, **unread)
    assert cluster.sent == [("w withdrawn", 3)]

    send(driver)
    assert cluster.sent == [("w withdrawn", 3), ("g", 3)]


def test_plan_that_was_not_sent_does_not_wait_for_acknowledgements_on_the_topic_of_others(
    cluster: Cluster, driver: Driver
) -> None:
    driver = left_behind(driver, table({}))

    send(driver, held_acks={"shop.acks": "it is not read to its end yet"})

    assert cluster.sent == [("g", 3)]


def test_plan_that_has_expired_before_orders_were_read_is_not_sent(
    cluster: Cluster, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = left_behind(driver, table({}))
    send(driver, held="orders are not read to their end yet")
    monkeypatch.setattr(late, "now_ms", lambda: NOW_MS + 60_000)

    send(driver)

    assert (cluster.sent, known(driver)) == ([], (3, ""))


def test_plan_that_was_withdrawn_before_it_was_sent_is_not_sent(cluster: Cluster, driver: Driver) -> None:
    driver = left_behind(driver, table({}))
    send(driver, held="orders are not read to their end yet")
    batch = batch_of(driver, stamp=stamp_of(at_ms=NOW_MS))
    publish_plans(batch, table({"epoch": 4, **WITHDRAWAL}))

    send(driver)

    assert (cluster.sent, known(driver)) == ([("g withdrawn", 4)], (4, ""))


def test_withdrawal_is_sent_whenever_it_was_made(cluster: Cluster, driver: Driver) -> None:
    cluster.topic = {"g": 2}

    send(left_behind(driver, table({**WITHDRAWAL, "valid_until": at(-1)})))

    assert cluster.sent == [("g withdrawn", 3)]


def again(decided: Settled, changes: dict[str, Any]) -> Settled:
    """The batch that runs again."""
    orders = {name: changes[name] for name in ("paused", "pinned", "resumed") if name in changes}
    stored = Stored(decisions=decided.services.store.tables["plan_state"], recorded=table(), **orders)
    services = replace(decided.services, store=stored, config=changes.get("config", PUBLISHING))
    past = Past(stamps={FIRST_WRITTEN: decided.stamp})
    return replace(decided, driver=replace(decided.driver, services=services), past=past)


def test_batch_that_runs_again_leaves_its_plan_to_the_next_one_which_has_read_orders(
    cluster: Cluster, decided: Settled
) -> None:
    batch = again(decided, {})

    assert publish_plans(batch, table({"epoch": 4, "state": state_of(epoch=4)})) == 0
    assert cluster.sent == []

    send(batch.driver)
    assert (cluster.sent, known(batch.driver)) == ([("g", 4)], (4, "target"))


@each_forbidding
def test_plan_of_a_batch_that_runs_again_is_not_sent_where_it_would_not_be_made_any_more(
    cluster: Cluster, decided: Settled, changes: dict[str, Any]
) -> None:
    batch, state = again(decided, changes), state_of(epoch=4, status=changes.get("status", "open"))
    publish_plans(batch, table({"epoch": 4, "state": state}))

    send(batch.driver)

    assert (cluster.sent, known(batch.driver)) == ([], (4, ""))


def test_plans_that_were_not_sent_are_sent_with_the_next_connection(cluster: Cluster, driver: Driver) -> None:
    cluster.topic = {"g": 3}
    connect(left_behind(driver, table({})).services, driver.memory)
    plans = table({}, {"epoch": 4, "target_hash": "newer"})
    driver = left_behind(driver, plans)
    cluster.commit = failure(AWAY)
    batch = batch_of(driver, stamp=stamp_of(at_ms=NOW_MS))
    assert publish_plans(batch, plans.filter(pc.field("epoch") == 4)) == 0
    cluster.now_s += 60
    cluster.commit = None

    send(driver)

    assert (cluster.sent, known(driver)) == ([("g", 4)], (4, "newer"))


def test_pause_during_an_outage_withdraws_the_plan_before_the_one_that_was_not_sent(
    cluster: Cluster, driver: Driver
) -> None:
    cluster.topic = {"g": 3}
    connect(left_behind(driver, table({})).services, driver.memory)
    plans = table({}, {"epoch": 4, "target_hash": "newer"})
    driver = left_behind(driver, plans, paused=("g",))
    cluster.commit = failure(AWAY)
    batch = batch_of(driver, stamp=stamp_of(at_ms=NOW_MS))
    publish_plans(batch, plans.filter(pc.field("epoch") == 4))
    cluster.commit, cluster.now_s = None, cluster.now_s + 60

    send(driver)

    assert cluster.sent == []
    assert after_pause(driver) == ("publish", 5, None)


@pytest.mark.parametrize("in_tables", [table(), table({"epoch": 2})], ids=["created again", "older copy"])
def test_pause_withdraws_a_plan_that_only_the_topic_has(
    cluster: Cluster, driver: Driver, in_tables: Any
) -> None:
    cluster.topic = {"g": 3}

    connect(left_behind(driver, in_tables).services, driver.memory)

    assert after_pause(driver) == ("publish", 4, None)


def test_late_plan_that_the_broker_does_not_take_is_sent_with_the_next_connection(
    cluster: Cluster, driver: Driver
) -> None:
    driver = left_behind(driver, table({}))
    cluster.commit = failure(AWAY)
    send(driver)
    cluster.commit, cluster.now_s = None, cluster.now_s + 30

    send(driver)

    assert (cluster.sent, known(driver)) == ([("g", 3)], (3, "target"))


def test_control_topic_that_is_gone_is_said_so(
    driver: Driver, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> bool:
        raise TopicMissingError("control topic is gone")

    driver = left_behind(driver, table({}))
    connect(driver.services, driver.memory)
    monkeypatch.setattr(late, "send", gone)

    with pytest.raises(TopicMissingError):
        send(driver)
    assert cluster.sent == []


def test_broker_is_poked_for_a_plan_that_is_sent_late(
    cluster: Cluster, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    poked: list[str] = []
    monkeypatch.setattr(
        publication, "poke_groups", lambda _services, sent: poked.extend(one[0] for one in sent)
    )
    driver = left_behind(driver, table({}))
    cluster.commit = failure(AWAY)
    send(driver)
    assert poked == []

    cluster.commit, cluster.now_s = None, cluster.now_s + 30
    send(driver)
    send(driver)

    assert poked == ["g"]


def test_dry_driver_whose_withdrawal_is_not_taken_tries_again_after_half_a_minute_and_decides_meanwhile(
    cluster: Cluster, driver: Driver
) -> None:
    cluster.topic = {"g": 2}
    driver = as_changed(driver, FORBIDDING["dry run"], table(WITHDRAWAL))
    cluster.coordinator = failure(AWAY)
    for _ in range(3):
        send(driver)
        assert connect(driver.services, driver.memory) is None
    assert (cluster.sent, cluster.producers) == ([], 1)
    cluster.coordinator, cluster.now_s = None, cluster.now_s + 30

    send(driver)

    assert (cluster.sent, driver.memory.unsent) == ([("g withdrawn", 3)], {})
