"""Tenants with an acks topic each, and the rights of the page: nobody is believed about the groups of others."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import ConfigResource, ResourceType
from typer.testing import CliRunner

from assignor.protocol import acks
from assignor.protocol.acks import AnyAck, Follows, Refused
from pipeline.config.load import load
from pipeline.config.model import ClusterConfig, ControlConfig
from pipeline.kafka import cluster
from pipeline.operate.cli.app import app
from tests.support.brokers.broker import create_topics, produce
from tests.support.brokers.inject import inject
from tests.support.brokers.secured import Secured
from tests.support.groups.group_records import lopsided_group
from tests.support.job.job import RunningJob, eager_plan, job_config, running
from tests.support.operate.page_rights import rights_of
from tests.support.waiting import wait_until

SHOP, BANK, OTHER = "shop-1", "bank-1", "tenantless"
CONTROL = ControlConfig(
    topic="tenants.plans",
    acks_topic="tenants.acks",
    commands_topic="tenants.commands",
    acks_topics={"shop-": "shop.acks", "bank-": "bank.acks"},
)

ACKS = ("shop.acks", "bank.acks", CONTROL.acks_topic)


@pytest.fixture(scope="module")
def tenants(secured: Secured) -> Secured:
    for user in ("shop", "bank"):
        page = {"lagwise.assignments": CONTROL.topic, f"{user}.acks": f"{user}.acks", f"{user}-": f"{user}-*"}
        secured.add_user(user)
        secured.allow(user, *rights_of(user, page))
    create_topics(secured.open_servers, {"shop-orders": 3, "bank-orders": 3, "orders": 3})
    for topic, group in (("shop-orders", SHOP), ("bank-orders", BANK), ("orders", OTHER)):
        produce(secured.open_servers, topic, dict.fromkeys(range(3), 20))
        inject(secured.open_servers, lopsided_group(group, topic))
    return secured


def of(kind: type[AnyAck], group: str, **more: str) -> AnyAck:
    """An acknowledgement of the first plan by the member that has all."""
    head = {"cluster": "local", "group": group, "generation": 1, "epoch": 1, "member": "busy", "at_ms": 0}
    return kind(**head, **more)


def refusal_of_kafka(tenants: Secured, user: str, topic: str, *said: AnyAck) -> KafkaError | None:
    """Write these as the user; what Kafka has against it."""
    errors: list[KafkaError] = []
    producer = Producer({**tenants.properties(user), "message.timeout.ms": 10_000})
    for ack in said:
        producer.produce(
            topic,
            acks.encode(ack),
            acks.encode_key(ack),
            on_delivery=lambda error, _: errors.append(error) if error is not None else None,
        )
    try:
        left = producer.flush(20)
    except KafkaException as failure:
        return failure.args[0]
    assert left == 0
    return errors[0] if errors else None


def said_of(job: RunningJob, group: str) -> list[tuple[str, str | None]]:
    """Acknowledgements that count."""
    return sorted((row["kind"], row["why"]) for row in job.rows("acks") if row["group_id"] == group)


def quarantined(job: RunningJob) -> set[tuple[str, str]]:
    return {(row["topic"], row["reason"]) for row in job.rows("quarantine")}


def test_acknowledgement_moves_only_what_is_its_topics(tenants: Secured, tmp_path: Path) -> None:
    plans = eager_plan(dry_run=False)
    name = ClusterConfig(name="local")
    config = job_config(tenants.open_servers, tmp_path / "tables", cluster=name, control=CONTROL, plan=plans)
    with running(config) as job:
        groups = (SHOP, BANK, OTHER)
        job.wait(
            lambda: all(job.last_decision(group)["decision"] == "publish" for group in groups), what="plans"
        )

        # Until rights have come to the broker, a tenant may write nothing at all.
        wait_until(
            lambda: refusal_of_kafka(tenants, "bank", "bank.acks", of(Follows, BANK)) is None, what="rights"
        )
        for topic in ("shop.acks", CONTROL.acks_topic, CONTROL.commands_topic, CONTROL.topic):
            refused = refusal_of_kafka(tenants, "bank", topic, of(Refused, SHOP, why="forged"))
            assert refused is not None, topic
            assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, topic
        # What Kafka lets it do: name groups of others on its own topic.
        forged = [of(Refused, group, why="forged") for group in (SHOP, OTHER)]
        assert refusal_of_kafka(tenants, "bank", "bank.acks", *forged) is None

        job.wait(lambda: len(quarantined(job)) == 2 and said_of(job, BANK), what="what the bank wrote")
        assert said_of(job, BANK) == [("accepted", None)]
        assert (said_of(job, SHOP), said_of(job, OTHER)) == ([], [])
        reason = (
            "acknowledgement of group {!r} on topic bank.acks: only those on {} count (control.acks_topics)"
        )
        assert quarantined(job) == {
            ("bank.acks", reason.format(SHOP, "shop.acks")),
            ("bank.acks", reason.format(OTHER, CONTROL.acks_topic)),
        }

        wait_until(
            lambda: refusal_of_kafka(tenants, "shop", "shop.acks", of(Refused, SHOP, why="static")) is None,
            what="rights of the shop",
        )
        job.wait(lambda: said_of(job, SHOP), what="what the shop wrote")
        assert said_of(job, SHOP) == [("refused", "static")]

    said = said_by_doctor(tenants, tmp_path)
    assert {name for name in ACKS if f"topic {name} can be read" in said} == set(ACKS), said

    # Who changes a prefix starts from what stands on the new topic, whatever its offsets.
    moved = CONTROL.model_copy(update={"acks_topics": {"shop-": "bank.acks", "bank-": "bank.acks"}})
    with running(config.model_copy(update={"control": moved})) as job:
        job.wait(lambda: ("refused", "forged") in said_of(job, SHOP), what="what stands on the other topic")
        assert said_of(job, SHOP) == [("refused", "forged")]


def said_by_doctor(tenants: Secured, folder: Path) -> str:
    """What it says of the tables there, and of a configuration that does not quote its keys."""
    file = folder / "lagwise.toml"
    file.write_text(
        f'[kafka.properties]\n"bootstrap.servers" = "{tenants.open_servers}"\n'
        f'[tables]\nroot = "{folder / "tables"}"\n[cluster]\nname = "local"\n[control]\n'
        f'topic = "{CONTROL.topic}"\nacks_topic = "{CONTROL.acks_topic}"\n'
        f'commands_topic = "{CONTROL.commands_topic}"\n'
        '[control.acks_topics]\nshop- = "shop.acks"\nbank- = "bank.acks"\n',
        encoding="utf-8",
    )
    assert load(file).control == CONTROL
    return CliRunner().invoke(app, ["doctor", "--config", str(file)]).output


def test_topics_of_tenants_are_made_as_that_of_all(tenants: Secured) -> None:
    cluster.inspect(tenants.admin, CONTROL, timeout_s=30)

    wanted = [ConfigResource(ResourceType.TOPIC, name) for name in ACKS]
    found = [future.result(10) for future in tenants.admin.describe_configs(wanted).values()]
    assert {one["cleanup.policy"].value for one in found} == {"compact,delete"}
    assert {one["message.timestamp.type"].value for one in found} == {"LogAppendTime"}
    listed = tenants.admin.list_topics(timeout=10).topics
    assert {len(listed[name].partitions) for name in ACKS} == {1}
