"""What `lagwise doctor` learns from a real broker, and how a right that is missing shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AclOperation, ResourceType

from assignor.protocol.control import encode, encode_key
from pipeline.config.model import Config
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.operate.doctor.brokers import ask
from pipeline.operate.doctor.evidence import read_group, read_stream
from pipeline.operate.doctor.finding import Finding
from tests.support.brokers.broker import admin_client, create_topics, produce
from tests.support.brokers.secured import Secured
from tests.support.followers.plans import plan as published
from tests.support.operate.patient import Patient, group, lag, now, plan
from tests.support.waiting import wait_until

NO_GROUP = "Kafka has no consumer group of this name"


class Clinic:
    """Tables, and the configuration of a stream with a control topic of the test's own."""

    def __init__(self, root: Path, properties: dict[str, str], *, timeout_s: int = 10) -> None:
        self.patient = Patient(root)
        self.patient.is_well()
        self.control = f"doctor.{uuid4().hex}"
        self.topics = (self.control, f"{self.control}.acks", f"{self.control}.orders")
        self.config = Config.model_validate(
            {
                "cluster": {"name": "local"},
                "kafka": {"properties": properties},
                "source": {"request_timeout_s": timeout_s},
                "control": dict(zip(("topic", "acks_topic", "commands_topic"), self.topics, strict=True)),
            }
        )

    def asked(self, group_id: str | None = "billing") -> list[tuple[str, str]]:
        """Level and cause of everything that the brokers say."""
        stream = read_stream(self.patient.tables, self.config, is_configured=True, now=now())
        evidence = None if group_id is None else read_group(stream, group_id)
        found: list[Finding] = list(ask(stream, evidence))
        assert {one.as_of for one in found} == {now()}
        return [(one.level, one.cause) for one in found]


@pytest.fixture
def clinic(broker: EmbeddedBroker, tmp_path: Path) -> Clinic:
    made = Clinic(tmp_path, {"bootstrap.servers": broker.bootstrap_servers})
    create_topics(broker.bootstrap_servers, dict.fromkeys(made.topics, 1))
    return made


@contextmanager
def member_of(bootstrap: str, group_id: str, topic: str) -> Iterator[None]:
    """A consumer that has joined the group."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group_id, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])

    def has_joined() -> bool:
        consumer.poll(0.2)
        return bool(consumer.assignment())

    try:
        wait_until(has_joined, what="the member to have its partitions")
        yield
    finally:
        consumer.close()


def write_plan(bootstrap: str, topic: str, group_id: str, epoch: int) -> None:
    record = published({}, {"b-1": {"invoices": (0,)}}, epoch=epoch, group=group_id)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, key=encode_key("local", group_id), value=encode(record))
    assert producer.flush(10) == 0


def test_group_is_described_and_compared_with_the_tables(broker: EmbeddedBroker, clinic: Clinic) -> None:
    name, topic = f"doctor-{uuid4().hex}", f"doctor-{uuid4().hex}"
    create_topics(broker.bootstrap_servers, {topic: 1})
    clinic.patient.write("consumer_groups", group(group_id=name))
    with member_of(broker.bootstrap_servers, name, topic):
        joined = clinic.asked(name)[0]
    left = clinic.asked(name)[0]

    text = "Kafka has the group: type classic, state {}, {} member(s); the tables have 2"
    assert joined == ("note", text.format("stable", 1))
    assert left == ("note", text.format("empty", 0))


def test_group_that_kafka_lacks_is_a_problem_unless_the_tables_have_it(clinic: Clinic) -> None:
    assert clinic.asked(f"doctor-{uuid4().hex}")[0] == ("problem", NO_GROUP)
    assert clinic.asked("billing")[0] == ("note", f"{NO_GROUP}: it was deleted, or has expired")


def test_plan_on_the_control_topic_is_compared_with_the_tables(
    broker: EmbeddedBroker, clinic: Clinic
) -> None:
    nothing = clinic.asked()[1]
    clinic.patient.decide("unchanged", "plan epoch 7 is still current", plan=plan())
    unsent = clinic.asked()[1]
    write_plan(broker.bootstrap_servers, clinic.control, "billing", 6)
    write_plan(broker.bootstrap_servers, clinic.control, "other", 9)
    late = clinic.asked()[1]
    write_plan(broker.bootstrap_servers, clinic.control, "billing", 7)

    head = "plan epoch 7 is not on the control topic, where the newest epoch of the group is"
    assert nothing == ("ok", "the control topic can be read, and holds no plan of the group")
    assert unsent == ("problem", f"{head} -")
    assert late == ("problem", f"{head} 6")
    assert clinic.asked()[1] == ("ok", "the control topic can be read, and holds plan epoch 7 of the group")


def test_tables_of_another_cluster_are_noticed(broker: EmbeddedBroker, clinic: Clinic) -> None:
    own = admin_client(broker.bootstrap_servers).list_topics(timeout=10).cluster_id
    clinic.patient.write("partition_lag", lag(0), cluster_id=own)
    same = clinic.asked()
    clinic.patient.write("partition_lag", lag(0), cluster_id="another")

    assert len(same) == 2
    assert clinic.asked()[0] == (
        "problem",
        f"the tables belong to Kafka cluster another, but this configuration leads to {own}",
    )


def test_job_may_read_its_topics_and_misses_one_that_is_gone(clinic: Clinic) -> None:
    good = clinic.asked(None)
    clinic.config = clinic.config.model_copy(
        update={"control": clinic.config.control.model_copy(update={"acks_topic": "doctor.none"})}
    )

    readable = [("ok", f"topic {name} can be read") for name in ("__consumer_offsets", *clinic.topics)]
    assert sorted(good) == sorted(readable)
    level, cause = clinic.asked(None)[1]
    assert level == "problem"
    assert cause.startswith("topic doctor.none cannot be read: Broker: Unknown topic or partition")


def test_missing_rights_are_told_apart_from_missing_groups(secured: Secured, tmp_path: Path) -> None:
    user = "doctor-few-rights"
    secured.add_user(user)
    clinic = Clinic(tmp_path, secured.settings(user))
    create_topics(secured.open_servers, dict.fromkeys(clinic.topics, 1))
    secured.allow(user, (AclOperation.DESCRIBE, ResourceType.TOPIC, clinic.control))
    secured.allow(user, (AclOperation.DESCRIBE, ResourceType.GROUP, "lagwise-*"))
    produce(secured.open_servers, clinic.control, {0: 1})

    wait_until(lambda: len(clinic.asked()) == 2, what="the rights to take effect")
    described, control = clinic.asked()

    assert described == (
        "unknown",
        "this user may not describe the group, so whether Kafka has it is unknown; lagwise lists it nevertheless",
    )
    assert control[0] == "problem"
    assert f"topic {clinic.control} cannot be read" in control[1]
    assert "authorization failed" in control[1]


def test_user_whom_kafka_does_not_know_is_refused_and_named(secured: Secured, tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, secured.settings("doctor-nobody"), timeout_s=3)

    ((level, cause),) = clinic.asked()

    assert level == "problem"
    assert cause.startswith("Kafka refuses to answer; what follows is from the tables alone: ")
    assert "password" not in cause
