"""A plan waits for an operator, and is published once by his order, whatever dies in between."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from assignor.protocol import commands
from assignor.protocol.commands import Approval, Orders
from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.operate.cli.app import app
from pipeline.operate.cli.orders.topic import orders_topic
from pipeline.operate.cli.serve import desk_of
from pipeline.operate.serve.app import build_app
from pipeline.run.batch.steps import run
from pipeline.run.health.monitor import Monitor
from pipeline.tables.reading import Tables
from tests.support.brokers.broker import create_topics, produce
from tests.support.brokers.inject import inject
from tests.support.brokers.traffic import control_records
from tests.support.groups.group_records import group_record, lopsided_group, member
from tests.support.job.job import read_table, running, write_config
from tests.support.job.steps import AmongGhosts
from tests.support.operate.asgi import ask
from tests.support.operate.serving import Answer

_ASK = """
[[plan.groups]]
pattern = ".*"
dry_run = "approve"
[serve]
token = "env:LAGWISE_PAGE_TOKEN"
"""
_TOKEN = "correct horse battery"  # noqa: S105 - of the test
Lagwise = Callable[..., Result]


@pytest.fixture
def group() -> str:
    """Name of a group, and of its topic."""
    return f"approval-{uuid4().hex}"


@pytest.fixture
def file(forged_broker: EmbeddedBroker, group: str, tmp_path: Path) -> Path:
    """The stream's configuration, for a group with everything on one of its two members."""
    bootstrap = forged_broker.bootstrap_servers
    create_topics(bootstrap, {group: 3})
    produce(bootstrap, group, dict.fromkeys(range(3), 20))
    inject(bootstrap, lopsided_group(group, group))
    path = tmp_path / "lagwise.toml"
    write_config(path, bootstrap, tmp_path / "tables")
    path.write_text(path.read_text(encoding="utf-8") + _ASK, encoding="utf-8")
    return path


@pytest.fixture
def lagwise(file: Path) -> Lagwise:
    """A command with that configuration."""

    def run(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(file)], catch_exceptions=False, **options)

    return run


class _BombError(Exception):
    pass


class Bombed(AmongGhosts):
    """The steps, of which those that are left fail once behind their work, where they decide to publish the group's plan."""

    def __init__(self, monitor: Monitor, *, left: list[str], config: Config, group: str) -> None:
        super().__init__(monitor)
        self.left = left
        self.publishes = lambda: _decision(config, group) == "publish"

    def behind(self, name: str) -> None:
        if self.left[:1] == [name] and self.publishes():
            self.left.pop(0)
            raise _BombError


def test_plan_waits_and_is_published_once_by_the_order_of_the_first_operator(
    forged_broker: EmbeddedBroker,
    file: Path,
    group: str,
    lagwise: Lagwise,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAGWISE_PAGE_TOKEN", _TOKEN)
    config, bootstrap = load(file), forged_broker.bootstrap_servers
    with running(config) as job:
        job.wait(lambda: _decision(config, group) == "awaiting_approval", what="a plan that waits")
        job.wait_for_batches(2)
        assert _published(bootstrap, group) == set()
    shown = lagwise("approve", group, input="n\n")
    assert (shown.exit_code, "  plan " in shown.stdout) == (1, True)
    name = shown.stdout.partition("  plan ")[2].split()[0]

    # The driver is away when the order is given, and dies twice between the order and the publication.
    stale_page = _approve_on_page(config, group, f"{name}0")
    first = _approve_on_page(config, group, name)
    second = lagwise("approve", group, "--yes")
    second_page = _approve_on_page(config, group, name)
    left = ["make_plans", "record_decisions"]
    bombed = partial(Bombed, left=left, config=config, group=group)
    with running(config, run_batch=partial(run, steps=bombed)) as job:
        job.wait(lambda: not left and _published(bootstrap, group), what="the plan on the control topic")
        job.wait_for_batches(2)
        late = lagwise("approve", group, "--plan", name)

        # One who does not look at the tables first is told in them.
        _approve_blindly(config, group, name)
        job.wait(lambda: _refusals(config, group), what="the answer to the blind approval")
        inject(bootstrap, [_turned(group)])
        job.wait(lambda: _decision(config, group) == "awaiting_approval", what="a plan for the other group")
        _approve_blindly(config, group, name)
        job.wait(lambda: len(_refusals(config, group)) == 2, what="the answer to the stale approval")

    assert (first.status, left) == (200, [])
    assert (stale_page.status, f"but {name} does" in stale_page.text) == (409, True)
    assert second.exit_code == 1
    told = "ann@page has already approved the plan, and the stream publishes it"
    assert told in second.stderr
    assert (second_page.status, told in second_page.text) == (409, True)
    assert late.exit_code == 1
    ((epoch, reason),) = _publications(config, group)
    assert f"plan epoch {epoch} is published already, approved by ann@page" in late.stderr
    assert {row["approved_by"] for row in read_table(config, "orders") if row["group_id"] == group} == {
        "eva@desk"
    }, "the newest approval"
    assert reason.endswith("approved by ann@page: INC-1")
    ((sent, value),) = _published(bootstrap, group)
    assert (sent, {move["to"] for move in json.loads(value)["moves"]}) == (epoch, {"idle"})
    already, stale = _refusals(config, group)
    assert already == f"approval refused: plan epoch {epoch} has published it already (approved by eva@desk)"
    assert stale.startswith("approval refused: plan ")
    assert "awaiting_approval since" in lagwise("groups", "--group", group).stdout
    assert lagwise("approve", group, "--yes").exit_code == 0


def _turned(group: str) -> Any:
    """A rebalance: everything is on the other member."""
    idle = member("idle", group, assigned={group: (0, 1, 2)})
    return group_record(group, idle, member("busy", group), generation=2)


def _approve_on_page(config: Config, group: str, name: str) -> Answer:
    """What Ann is answered when she sends the form of the page on which she has looked at a plan."""
    tables = Tables(config.tables.root)
    desk = desk_of(tables, config)
    fields = {"plan": name, "name": "ann", "reason": "INC-1", "token": _TOKEN}
    return ask(
        build_app(tables, config, desk),
        f"/approve?id={group}",
        method="POST",
        body=urlencode(fields).encode(),
        Host="localhost:8000",
        Origin="http://localhost:8000",
        **{"Content-Type": "application/x-www-form-urlencoded"},
    )


def _approve_blindly(config: Config, group: str, name: str) -> None:
    """The order of one who has looked at another plan; it is not asked whether it waits."""
    target_hash, base_hash = name.split("-")
    with orders_topic(config) as topic:
        held = topic.read().orders[topic.cluster, group]
    assert held.approval is not None
    at_ms = held.approval.at_ms + 1
    approval = Approval(target_hash=target_hash, base_hash=base_hash, by="eva@desk", at_ms=at_ms)
    orders = Orders(cluster=held.cluster, group=group, approval=approval, at_ms=at_ms, by="eva@desk")
    producer = Producer({**config.kafka.properties})
    producer.produce(
        config.control.commands_topic, key=commands.encode_key(orders), value=commands.encode(orders)
    )
    assert producer.flush(30) == 0


def _decision(config: Config, group: str) -> str | None:
    rows = {row["group_id"]: row["decision"] for row in read_table(config, "plan_state")}
    return rows.get(group)


def _published(bootstrap: str, group: str) -> set[tuple[int, str]]:
    """Epoch and content of the group's records on the control topic; a batch that runs again sends the same bytes."""
    return {(epoch, value) for name, epoch, value in control_records(bootstrap) if name == group}


def _publications(config: Config, group: str) -> list[tuple[int, str]]:
    return [
        (row["epoch"], row["reason"])
        for row in read_table(config, "recommendations")
        if (row["group_id"], row["decision"]) == (group, "publish")
    ]


def _refusals(config: Config, group: str) -> list[str]:
    rows = [row for row in read_table(config, "recommendations") if row["group_id"] == group]
    causes = [row["reason"].partition("; ")[0] for row in sorted(rows, key=lambda row: row["created_at"])]
    return [cause for cause in causes if cause.startswith("approval refused: ")]
