"""When plans can be published, what is known to be published, and what is sent late; Kafka's clients are played."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import KafkaError, KafkaException

from assignor.protocol import control
from pipeline.config.model import Config, GroupRule, PlanConfig
from pipeline.errors import AccessRefusedError, BrokerUnavailableError, FencedError, PublishError
from pipeline.planning.rows import kept
from pipeline.planning.state import FRESH, PlanState, to_json
from pipeline.planning.values import Published
from pipeline.publish import outbox
from pipeline.publish.outbox import Publisher
from pipeline.publish.read_back import decisions_of
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans import publication
from pipeline.run.batch.plans.history import record_decisions
from pipeline.run.batch.plans.publication import publish_plans, why_unpublishable
from pipeline.run.driver import Driver
from pipeline.run.replay import FIRST_WRITTEN, Past
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import PLAN_STATE
from pipeline.tables.stamp import Stamp
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import NOW_MS, at

AWAY = KafkaError._TIMED_OUT
PUBLISHING = Config(plan=PlanConfig(dry_run=False))


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@dataclass
class Cluster:
    """Brokers that do what the test says, and a clock."""

    now_s: float = 1_000.0
    coordinator: Exception | None = None
    """What the transaction coordinator says."""
    topic: dict[str, int] | Exception = field(default_factory=dict)
    """Epoch of each group in the control topic."""
    commit: Exception | None = None
    """What becomes of a transaction."""
    sent: list[tuple[str, int]] = field(default_factory=list)
    """Group and epoch of records in committed transactions."""
    producers: int = 0


class PlayedProducer:
    """A transactional producer."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._open: list[tuple[str, int]] = []
        cluster.producers += 1

    def init_transactions(self, _timeout_s: float) -> None:
        if self._cluster.coordinator is not None:
            raise self._cluster.coordinator

    def begin_transaction(self) -> None:
        self._open = []

    def produce(self, _topic: str, *, key: bytes, value: bytes | None, headers: Any) -> None:
        _, group = control.decode_key(key)
        self._open.append((group if value else f"{group} withdrawn", int(dict(headers)["epoch"])))

    def poll(self, _timeout_s: float) -> None:
        pass

    def commit_transaction(self, _timeout_s: float) -> None:
        if self._cluster.commit is not None:
            raise self._cluster.commit
        self._cluster.sent += self._open


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    played = Cluster()

    def epochs(_self: Publisher) -> dict[str, int]:
        if isinstance(played.topic, Exception):
            raise played.topic
        return played.topic

    monkeypatch.setattr(outbox, "Producer", lambda _properties, logger: PlayedProducer(played))  # noqa: ARG005
    monkeypatch.setattr(Publisher, "_epochs_in_topic", epochs)
    monkeypatch.setattr(outbox, "time", SimpleNamespace(monotonic=lambda: played.now_s))
    monkeypatch.setattr(publication, "now_ms", lambda: NOW_MS)
    return played


@pytest.fixture
def driver() -> Driver:
    publisher = Publisher({}, topic="control", cluster="local", timeout_s=1)
    return idle_driver(publisher=publisher, store=SimpleNamespace(), config=PUBLISHING)


_ROW: dict[str, Any] = {
    "group_id": "g",
    "decision": "publish",
    "epoch": 3,
    "record": "{}",
    "target_hash": "target",
    "base_hash": "base",
    "valid_until": at(60),
    "updated_at": at(0),
    "recorded_at": at(0),
}


def driver_plan(epoch: int) -> Published:
    """A plan of which only the epoch matters."""
    return Published(epoch=epoch, target_hash="", base_hash="", valid_until_ms=0)


def table(*plans: dict[str, Any]) -> pa.Table:
    """Rows of `plan_state`, which those of `recommendations` are taken from."""
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(PLAN_STATE)])
    return pa.Table.from_pylist([_ROW | plan for plan in plans], schema=schema)


class Stored:
    """Stands for the tables."""

    def __init__(self, *, decisions: pa.Table, recorded: pa.Table, paused: tuple[str, ...] = ()) -> None:
        orders = pa.table(
            {"group_id": pa.array(paused, pa.string()), "paused": pa.array([True] * len(paused), pa.bool_())}
        )
        self.tables = {"plan_state": decisions, "recommendations": recorded, "orders": orders}
        self.appended: list[pa.Table] = []
        self.stamps: dict[str, Stamp] = {}

    def stamp(self, name: str) -> Stamp | None:
        return self.stamps.get(name)

    def arrow(
        self, name: str, columns: list[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        rows = self.tables[name]
        found = rows if where is None else rows.filter(where)
        return found if columns is None else found.select(columns)

    def write(self, name: str, rows: pa.Table, _stamp: Stamp) -> None:
        self.appended.append(rows)
        self.tables[name] = rows


def unavailable(driver: Driver, plans: pa.Table, *, paused: tuple[str, ...] = ()) -> str | None:
    """Why no plan can be published by a driver with such a history."""
    recorded = plans.append_column("created_at", plans["recorded_at"])
    stored = Stored(decisions=table(), recorded=recorded, paused=paused)
    services = replace(driver.services, store=stored)
    return why_unpublishable(services, driver.memory)


def publish(driver: Driver, plans: pa.Table) -> None:
    """Send what the batch has decided."""
    written = decisions_of(plans).plans
    driver.services.publisher.publish([one.record(group) for group, one in written.items()])


def test_publisher_that_is_connected_is_available_and_stays_so(cluster: Cluster, driver: Driver) -> None:
    cluster.topic = {"g": 3}

    assert unavailable(driver, table({})) is None
    assert unavailable(driver, table({})) is None
    assert cluster.producers == 1
    assert driver.memory.published["g"].epoch == 3
    assert driver.memory.published["g"].target_hash == "target"


def test_connection_that_failed_is_tried_again_after_half_a_minute(cluster: Cluster, driver: Driver) -> None:
    cluster.coordinator = failure(AWAY)
    first = unavailable(driver, table())
    cluster.coordinator = None

    cluster.now_s += 29.9
    too_soon = unavailable(driver, table())
    cluster.now_s += 0.1
    at_last = unavailable(driver, table())

    assert "plans cannot be published now: transactional id lagwise-" in (first or "")
    assert too_soon == first
    assert at_last is None
    assert cluster.producers == 2


def test_control_topic_that_cannot_be_read_makes_it_unavailable(cluster: Cluster, driver: Driver) -> None:
    cluster.topic = BrokerUnavailableError("control topic could not be read")

    assert "could not be read" in (unavailable(driver, table()) or "")
    with pytest.raises(BrokerUnavailableError, match="could not be read"):
        publish(driver, table({}))


def test_user_who_may_not_publish_is_said_so(cluster: Cluster, driver: Driver) -> None:
    cluster.coordinator = failure(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    with pytest.raises(AccessRefusedError):
        unavailable(driver, table())


def test_plans_that_were_not_sent_are_sent_with_the_next_connection(cluster: Cluster, driver: Driver) -> None:
    cluster.topic = {"g": 3}
    unavailable(driver, table({}))
    plans = table({}, {"epoch": 4, "target_hash": "newer"})
    cluster.commit = failure(AWAY)
    cluster.now_s += 60

    with pytest.raises(BrokerUnavailableError, match="plans could not be published"):
        publish(driver, plans.filter(pc.field("epoch") == 4))
    cluster.commit = None

    assert unavailable(driver, plans) is None
    assert cluster.sent == [("g", 4)]
    assert driver.memory.published["g"].epoch == 4
    assert driver.memory.published["g"].target_hash == "newer"


def test_broker_is_poked_for_a_plan_that_is_sent_late(
    cluster: Cluster, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    poked: list[str] = []
    monkeypatch.setattr(
        publication, "poke_groups", lambda _services, sent: poked.extend(one[0] for one in sent)
    )
    cluster.commit = failure(AWAY)
    unavailable(driver, table({}))
    assert poked == []

    cluster.commit, cluster.now_s = None, cluster.now_s + 30
    unavailable(driver, table({}))
    unavailable(driver, table({}))

    assert poked == ["g"]


def test_connection_whose_late_plans_are_not_taken_is_no_connection(cluster: Cluster, driver: Driver) -> None:
    cluster.commit = failure(AWAY)

    assert "plans could not be published" in (unavailable(driver, table({})) or "")
    cluster.commit, cluster.now_s = None, cluster.now_s + 30
    assert unavailable(driver, table({})) is None
    assert cluster.sent == [("g", 3)]


def test_plan_that_has_expired_unsent_is_not_sent_and_a_new_one_is_due(
    cluster: Cluster, driver: Driver
) -> None:
    assert unavailable(driver, table({"valid_until": at(-1)})) is None

    assert cluster.sent == []
    assert (driver.memory.published["g"].epoch, driver.memory.published["g"].target_hash) == (3, "")


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


def test_plan_of_a_driver_whose_tables_are_gone_leaves_its_epoch_and_nothing_else(
    cluster: Cluster, driver: Driver
) -> None:
    cluster.topic = {"g": 9, "h": 2}

    unavailable(driver, table({}))

    assert {group: (one.epoch, one.target_hash) for group, one in driver.memory.published.items()} == {
        "g": (9, ""),
        "h": (2, ""),
    }
    assert cluster.sent == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._FENCED, FencedError),
        (KafkaError.MSG_SIZE_TOO_LARGE, PublishError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessRefusedError),
    ],
)
def test_what_trying_again_does_not_cure_is_raised_as_such(
    cluster: Cluster, driver: Driver, code: int, kind: type[Exception]
) -> None:
    unavailable(driver, table())
    cluster.commit = failure(code)

    with pytest.raises(kind):
        publish(driver, table({}))


def test_batch_without_a_plan_needs_no_connection(cluster: Cluster, driver: Driver) -> None:
    publish(driver, table({"decision": "keep"}))

    assert cluster.producers == 0


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


def test_batch_sends_and_remembers_what_it_has_decided_and_nothing_else(
    cluster: Cluster, decided: Settled
) -> None:
    published = publish_plans(decided, record_decisions(decided, has_decided=True))

    memory = decided.driver.memory
    assert (cluster.sent, published) == ([("g", 4)], 1)
    assert {group: one.epoch for group, one in memory.published.items()} == {"g": 4}
    assert memory.states == {"g": "of g", "h": "of h"}


def test_batch_that_runs_again_after_newer_plans_were_published_sends_none_of_its_own(
    cluster: Cluster, decided: Settled
) -> None:
    decided.driver.memory.on_published({"g": decisions_of(table({"epoch": 9})).plans["g"].plan})

    publish_plans(decided, record_decisions(decided, has_decided=True))

    assert cluster.sent == []
    assert decided.driver.memory.published["g"].epoch == 9


def test_history_gets_what_is_to_be_recorded_once(cluster: Cluster, decided: Settled) -> None:
    record_decisions(decided, has_decided=True)
    record_decisions(decided, has_decided=True)

    (rows,) = decided.services.store.appended
    assert rows.select(["group_id", "created_at"]).to_pylist() == [{"group_id": "g", "created_at": at(0)}]
    assert cluster.sent == []


def test_batch_that_has_decided_nothing_sends_nothing(cluster: Cluster, decided: Settled) -> None:
    published = publish_plans(decided, record_decisions(decided, has_decided=False))

    assert (published, cluster.sent, decided.driver.memory.states) == (0, [], {})


def test_plan_that_the_broker_does_not_take_is_remembered_as_decided_and_not_as_published(
    cluster: Cluster, decided: Settled
) -> None:
    cluster.commit = failure(AWAY)

    published = publish_plans(decided, record_decisions(decided, has_decided=True))

    memory = decided.driver.memory
    assert (published, memory.published) == (0, {})
    assert memory.states == {"g": "of g", "h": "of h"}
