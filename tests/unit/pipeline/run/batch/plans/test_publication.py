"""When plans can be published, and what is known to be published; Kafka's clients are played."""

import pytest
from confluent_kafka import KafkaError

from pipeline.errors import AccessRefusedError, BrokerUnavailableError, FencedError, PublishError
from pipeline.publish.read_back import decisions_of
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans.history import record_decisions
from pipeline.run.batch.plans.publication import publish_plans
from pipeline.run.driver import Driver
from tests.support.job.frames import at
from tests.support.job.publishing import AWAY, Cluster, failure, publish, table, unavailable


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


def test_plan_that_has_expired_unsent_is_not_sent_and_a_new_one_is_due(
    cluster: Cluster, driver: Driver
) -> None:
    assert unavailable(driver, table({"valid_until": at(-1)})) is None

    assert cluster.sent == []
    assert (driver.memory.published["g"].epoch, driver.memory.published["g"].target_hash) == (3, "")


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


def test_plan_that_the_broker_does_not_take_is_remembered_as_decided_and_not_sent(
    cluster: Cluster, decided: Settled
) -> None:
    cluster.commit = failure(AWAY)

    published = publish_plans(decided, record_decisions(decided, has_decided=True))

    memory = decided.driver.memory
    assert (published, set(memory.unsent)) == (0, {"g"})
    assert memory.states == {"g": "of g", "h": "of h"}
