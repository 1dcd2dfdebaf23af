"""Orders given to a real broker, one process after the other and two at once."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from assignor.protocol import commands
from assignor.protocol.commands import Orders
from pipeline.config.load import load
from pipeline.errors import BrokerUnavailableError
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.operate.cli.app import app
from pipeline.operate.cli.orders.change import pin
from pipeline.operate.cli.orders.standing import stand
from pipeline.operate.cli.orders.topic import orders_topic
from tests.support.brokers.broker import admin_client, create_topics
from tests.support.waiting import wait_until

_CONFIG = """
[cluster]
name = "local"
[kafka.properties]
"bootstrap.servers" = "{bootstrap}"
[source]
request_timeout_s = {timeout_s}
[control]
commands_topic = "{topic}"
"""
Command = Callable[..., Result]


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    """A commands topic of the test's own."""
    name = f"orders.{uuid4().hex}"
    create_topics(broker.bootstrap_servers, {name: 1})
    return name


@pytest.fixture
def config(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> Path:
    file = tmp_path / "lagwise.toml"
    file.write_text(_CONFIG.format(bootstrap=broker.bootstrap_servers, topic=topic, timeout_s=30), "utf-8")
    return file


@pytest.fixture
def give(config: Path) -> Command:
    """The command with this configuration."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, (*arguments, "--config", str(config)), catch_exceptions=False)

    return run


def _standing(give: Command) -> dict[str, dict[str, Any]]:
    result = give("orders", "-o", "json")
    return {row["group"]: row for row in json.loads(result.stdout)}


def _write(broker: EmbeddedBroker, topic: str, key: bytes | None, value: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce(topic, key=key, value=value)
    assert producer.flush(30) == 0


def _wait_until_groups_are_loaded(broker: EmbeddedBroker) -> None:
    # A broker that has just started cannot say of every partition of the offsets topic what groups are in it.
    admin = admin_client(broker.bootstrap_servers)
    wait_until(lambda: not admin.list_consumer_groups().result().errors, what="all groups to be listed")


def test_pause_keeps_the_pin_and_resume_too(give: Command) -> None:
    give("pin", "billing", "invoices:0-3,7", "payments")

    paused = give("pause", "billing", "--reason", "INC-1")
    resumed = give("resume", "billing")

    pins = "pinned invoices:0-3,7 payments"
    assert paused.stdout == (
        f"billing on cluster local: paused (INC-1), {pins}. "
        "The stream reads this within 30 s; it then withdraws the group's published plan, if there is one, and "
        "publishes no other.\n"
    )
    assert f"local: {pins}, resumed 2" in resumed.stdout
    assert "a probation of the group ends" in resumed.stdout
    assert "was not paused" not in resumed.stderr
    assert "billing was not paused: this order only ends a probation" in give("resume", "billing").stderr
    assert _standing(give)["billing"]["pinned"] == {"invoices": "0-3,7", "payments": "*"}


def test_groups_have_orders_of_their_own(give: Command) -> None:
    give("pause", "one")
    give("trigger", "two")
    give("pin", "two", "t:1")
    give("unpin", "two")

    standing = _standing(give)

    assert [(g, standing[g]["paused"], standing[g]["pinned"]) for g in sorted(standing)] == [
        ("one", True, {}),
        ("two", False, {}),
    ]
    assert standing["one"]["triggered_at"] is None
    assert standing["two"]["triggered_at"] is not None


def test_order_says_who_gave_it_and_when(give: Command) -> None:
    given = json.loads(give("trigger", "g", "-o", "json").stdout)

    assert "@" in given["by"]
    assert given["triggered_at"] <= given["at"]
    assert _standing(give)["g"] == given


def test_table_and_csv_name_pins(give: Command) -> None:
    give("pin", "g", "t:1,2", "u")

    assert "t:1-2 u" in give("orders").stdout
    assert give("orders", "-o", "csv").stdout.splitlines()[0] == (
        "cluster,group,paused,reason,pinned,triggered_at,resumed_at,"
        "approved_plan,approved_by,approved_at,approval_reason,by,at"
    )


def test_order_for_what_is_not_there_holds_with_a_warning(
    give: Command, broker: EmbeddedBroker, topic: str
) -> None:
    _wait_until_groups_are_loaded(broker)

    result = give("pin", "no-such-group", "no-such-topic", f"{topic}:0-1")

    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "the cluster has no group no-such-group now; check the name: if it is right, the order waits for the group",
        "the cluster shows no topic no-such-topic now; check the name: if it is right, the pin waits for the topic",
        f"topic {topic} has only 1 partition(s) now; check the numbers: if they are right, the pin waits for the others",
    ]
    assert _standing(give)["no-such-group"]["pinned"] == {"no-such-topic": "*", topic: "0-1"}


def test_garbage_is_skipped_with_a_warning(give: Command, broker: EmbeddedBroker, topic: str) -> None:
    give("pin", "g", "t:1")
    key = commands.encode_key(Orders(cluster="local", group="g"))
    for record in ((None, b"x"), (b"\xff", b"{}"), (key, b"")):
        _write(broker, topic, *record)

    result = give("pause", "g")

    assert "paused, pinned t:1." in result.stdout
    assert f"skipped 3 record(s) on topic {topic} that are not orders, the last at 0@" in result.stderr


def test_aborted_orders_do_not_hold(give: Command, broker: EmbeddedBroker, topic: str) -> None:
    give("pin", "g", "t:1")
    aborted = Orders(cluster="local", group="g", paused=True)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, key=commands.encode_key(aborted), value=commands.encode(aborted))
    assert producer.flush(30) == 0
    producer.abort_transaction(30)

    assert (_standing(give)["g"]["paused"], _standing(give)["g"]["pinned"]) == (False, {"t": "1"})


def test_deleted_orders_are_written_again(give: Command, broker: EmbeddedBroker, topic: str) -> None:
    give("pin", "g", "t:1")
    _write(broker, topic, commands.encode_key(Orders(cluster="local", group="g")), None)

    assert "g on cluster local: paused. The" in give("pause", "g").stdout


def test_order_given_meanwhile_is_not_undone(give: Command, config: Path) -> None:
    settings = load(config)

    def slowly(held: Orders) -> Orders:
        # Another operator is done between this one's reading and writing.
        other = threading.Thread(target=give, args=("pause", "g"))
        other.start()
        other.join(60)
        return pin(held, {"t": (1,)})

    with orders_topic(settings) as topic, pytest.raises(BrokerUnavailableError, match="give it again"):
        topic.change("g", slowly)

    assert (_standing(give)["g"]["paused"], _standing(give)["g"]["pinned"]) == (True, {})
    with orders_topic(settings) as topic:
        assert replace(topic.change("g", lambda held: held)[0], by="").paused


def test_nobody_has_ordered_anything(give: Command) -> None:
    result = give("orders")

    assert (result.exit_code, result.stderr.count("there are no orders on topic")) == (1, 1)


def test_missing_topic_says_what_to_start(broker: EmbeddedBroker, tmp_path: Path) -> None:
    file = tmp_path / "lagwise.toml"
    text = _CONFIG.format(bootstrap=broker.bootstrap_servers, topic="never-made", timeout_s=30)
    file.write_text(text, encoding="utf-8")

    result = CliRunner().invoke(app, ("pause", "g", "--config", str(file)))

    assert result.exit_code == 1
    assert result.stderr == (
        "lagwise: topic never-made does not exist yet; start the stream (`lagwise run`), which creates and reads it\n"
    )


def test_broker_that_is_away_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "lagwise.toml"
    file.write_text(_CONFIG.format(bootstrap="127.0.0.1:1", topic="t", timeout_s=1), encoding="utf-8")

    result = CliRunner().invoke(app, ("pause", "g", "--config", str(file)))

    assert result.exit_code == 1
    assert result.stderr.startswith("lagwise: the Kafka cluster cannot be used: ")
    assert result.stderr.count("\n") == 1


def test_unpinning_part_of_a_whole_topic_changes_nothing(give: Command) -> None:
    give("pin", "g", "t")

    result = give("unpin", "g", "t:1")

    assert result.exit_code == 2
    assert _standing(give)["g"]["pinned"] == {"t": "*"}


def test_orders_of_the_page_and_of_the_commands_are_one_record(give: Command, config: Path) -> None:
    settings = load(config)

    def on_page(order: Any, partitions: str = "", reason: str = "") -> str:
        return stand(settings, "g", order=order, partitions=partitions, reason=reason, by="ann@page")

    assert give("pin", "g", "t:3").exit_code == 0
    told = on_page("pause", reason="INC-1")
    on_page("pin", partitions="t:0-1 u")

    row = _standing(give)["g"]
    assert "Orders for g are now: paused (INC-1), pinned t:3." in told
    assert "the cluster has no group g now" in told
    assert (row["paused"], row["reason"], row["by"]) == (True, "INC-1", "ann@page")
    assert row["pinned"] == {"t": "0-1,3", "u": "*"}
    assert give("resume", "g").exit_code == 0
    assert give("unpin", "g").exit_code == 0
    after = _standing(give)["g"]
    assert (after["paused"], after["pinned"]) == (False, {})
