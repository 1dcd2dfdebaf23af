"""When plans can be published, what is known to be published, and what is sent late; Kafka's clients are played."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.sql import DataFrame, SparkSession

from assignor.protocol import control
from pipeline.errors import AccessRefusedError, BrokerUnavailableError, FencedError, PublishError
from pipeline.publish import outbox
from pipeline.publish.outbox import Publisher
from pipeline.publish.read_back import read_decisions, read_states
from pipeline.run.batch import plans
from pipeline.run.batch.plans import publish_plans, why_unpublishable
from pipeline.run.driver import Batch, Driver
from tests.support.batches import batch_of, idle_driver, stamp_of
from tests.support.frames import NOW_MS, at, stored

AWAY = KafkaError._TIMED_OUT


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
    monkeypatch.setattr(plans, "now_ms", lambda: NOW_MS)
    return played


@pytest.fixture
def driver() -> Driver:
    publisher = Publisher({}, topic="control", cluster="local", timeout_s=1)
    return idle_driver(publisher=publisher, store=SimpleNamespace())


def unavailable(driver: Driver, recommendations: DataFrame) -> str | None:
    """Why no plan can be published by a driver with such a table."""
    driver.services.store.read = lambda _name: recommendations
    return why_unpublishable(driver.services, driver.memory)


def publish(driver: Driver, batch: DataFrame) -> None:
    """Send what the batch has decided."""
    driver.services.publisher.publish(
        [one.record(group) for group, one in read_decisions(batch).plans.items()]
    )


@pytest.fixture
def table(spark: SparkSession) -> Callable[..., DataFrame]:
    """Rows of `recommendations`."""

    def rows(*plans: dict[str, Any]) -> DataFrame:
        written = {
            "decision": "publish",
            "epoch": 3,
            "record": "{}",
            "target_hash": "target",
            "base_hash": "base",
            "valid_until": at(60),
            "created_at": at(0),
        }
        return stored(spark, "recommendations", *(written | plan for plan in plans))

    return rows


Table = Callable[..., DataFrame]


def test_publisher_that_is_connected_is_available_and_stays_so(
    cluster: Cluster, driver: Driver, table: Table
) -> None:
    cluster.topic = {"g": 3}

    assert unavailable(driver, table({})) is None
    assert unavailable(driver, table({})) is None
    assert cluster.producers == 1
    assert driver.memory.published["g"].epoch == 3
    assert driver.memory.published["g"].target_hash == "target"


def test_connection_that_failed_is_tried_again_after_half_a_minute(
    cluster: Cluster, driver: Driver, table: Table
) -> None:
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


def test_control_topic_that_cannot_be_read_makes_it_unavailable(
    cluster: Cluster, driver: Driver, table: Table
) -> None:
    cluster.topic = BrokerUnavailableError("control topic could not be read")

    assert "could not be read" in (unavailable(driver, table()) or "")
    with pytest.raises(BrokerUnavailableError, match="could not be read"):
        publish(driver, table({}))


def test_user_who_may_not_publish_is_said_so(cluster: Cluster, driver: Driver, table: Table) -> None:
    cluster.coordinator = failure(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    with pytest.raises(AccessRefusedError):
        unavailable(driver, table())


def test_plans_that_were_not_sent_are_sent_with_the_next_connection(
    cluster: Cluster, driver: Driver, table: Table
) -> None:
    cluster.topic = {"g": 3}
    unavailable(driver, table({}))
    plans = table({}, {"epoch": 4, "target_hash": "newer"})
    cluster.commit = failure(AWAY)
    cluster.now_s += 60

    with pytest.raises(BrokerUnavailableError, match="plans could not be published"):
        publish(driver, plans.where("epoch = 4"))
    cluster.commit = None

    assert unavailable(driver, plans) is None
    assert cluster.sent == [("g", 4)]
    assert driver.memory.published["g"].epoch == 4
    assert driver.memory.published["g"].target_hash == "newer"


def test_connection_whose_late_plans_are_not_taken_is_no_connection(
    cluster: Cluster, driver: Driver, table: Table
) -> None:
    cluster.commit = failure(AWAY)

    assert "plans could not be published" in (unavailable(driver, table({})) or "")
    cluster.commit, cluster.now_s = None, cluster.now_s + 30
    assert unavailable(driver, table({})) is None
    assert cluster.sent == [("g", 3)]


def test_plan_that_has_expired_unsent_is_not_sent_and_a_new_one_is_due(
    cluster: Cluster, driver: Driver, table: Table
) -> None:
    assert unavailable(driver, table({"valid_until": at(-1)})) is None

    assert cluster.sent == []
    assert (driver.memory.published["g"].epoch, driver.memory.published["g"].target_hash) == (3, "")


def test_withdrawal_that_was_not_sent_is_sent_whenever_it_was(
    cluster: Cluster, driver: Driver, table: Table
) -> None:
    cluster.topic = {"g": 2}

    unavailable(driver, table({"record": None, "valid_until": at(-1)}))

    assert cluster.sent == [("g withdrawn", 3)]


def test_plan_of_a_driver_whose_tables_are_gone_leaves_its_epoch_and_nothing_else(
    cluster: Cluster, driver: Driver, table: Table
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
    cluster: Cluster, driver: Driver, table: Table, code: int, kind: type[Exception]
) -> None:
    unavailable(driver, table())
    cluster.commit = failure(code)

    with pytest.raises(kind):
        publish(driver, table({}))


def test_batch_without_a_plan_needs_no_connection(cluster: Cluster, driver: Driver, table: Table) -> None:
    publish(driver, table({"decision": "keep"}))

    assert cluster.producers == 0


@pytest.fixture
def decided(driver: Driver, table: Table) -> Batch:
    """A batch that has written down a plan and something else, with others' rows beside them."""
    own = {"batch_id": 5, "created_at": at(0)}
    rows = table(
        own | {"epoch": 4, "state": "of g"},
        own | {"group_id": "h", "decision": "keep", "state": "of h"},
        {"group_id": "i", "batch_id": 4, "state": "of an earlier batch"},
        {"group_id": "j", "batch_id": 5, "created_at": at(-60), "state": "of another checkpoint"},
    )
    assert unavailable(driver, table()) is None
    driver.services.store.read = lambda _name: rows
    return batch_of(driver, stamp=stamp_of(at_ms=NOW_MS), written={"recommendations"})


def test_batch_sends_and_remembers_what_it_has_decided_and_nothing_else(
    cluster: Cluster, decided: Batch
) -> None:
    publish_plans(decided)

    memory = decided.driver.memory
    assert (cluster.sent, decided.published) == ([("g", 4)], 1)
    assert {group: one.epoch for group, one in memory.published.items()} == {"g": 4}
    assert memory.states == {"g": "of g", "h": "of h"}


def test_batch_that_has_decided_nothing_sends_nothing(cluster: Cluster, decided: Batch) -> None:
    decided.written.clear()

    publish_plans(decided)

    assert (cluster.sent, decided.driver.memory.states) == ([], {})


def test_plan_that_the_broker_does_not_take_is_remembered_as_decided_and_not_as_published(
    cluster: Cluster, decided: Batch
) -> None:
    cluster.commit = failure(AWAY)

    publish_plans(decided)

    memory = decided.driver.memory
    assert (decided.published, memory.published) == (0, {})
    assert memory.states == {"g": "of g", "h": "of h"}


def test_plans_of_a_batch_are_read_back_by_group(table: Table) -> None:
    rows = table(
        {"group_id": "h", "state": "later"}, {"group_id": "g"}, {"group_id": "i", "decision": "keep"}
    )

    decisions = read_decisions(rows)

    assert [(group, one.plan.epoch, one.value) for group, one in decisions.plans.items()] == [
        ("g", 3, "{}"),
        ("h", 3, "{}"),
    ]
    assert decisions.plans["g"].plan.valid_until_ms == NOW_MS + 60_000
    assert decisions.states == {"h": "later"}


def test_driver_that_starts_knows_what_was_decided_last_about_every_group(spark: SparkSession) -> None:
    """Plans are made every two hours; a rebalance of one group got it a decision of its own shortly before the next."""
    rows = [
        row_of("g", 0, "first"),
        row_of("g", 7200, "second"),
        row_of("h", 7200, "of both"),
        row_of("g", 14_000, "its own"),
        row_of("gone", -20_000, "long ago"),
        row_of("g", 14_001, "foreign") | {"cluster": "another"},
    ]

    states = read_states(stored(spark, "recommendations", *rows), cluster="local", interval_s=7200)

    assert states == {"g": "its own", "h": "of both"}


def row_of(group_id: str, after_s: float, state: str) -> dict[str, Any]:
    return {"group_id": group_id, "decision": "unchanged", "created_at": at(after_s), "state": state}
