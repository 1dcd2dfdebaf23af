"""Two brokers and the tables of two clusters on one page: orders reach their own, also when another cannot be read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.operate.cli.app import app as command
from pipeline.operate.cli.locations import find_several
from pipeline.operate.cli.serve import deployment
from pipeline.operate.serve.app import build_app
from tests.support.brokers.broker import create_topics
from tests.support.job.job import write_config
from tests.support.operate.asgi import ask
from tests.support.operate.cluster_world import cluster_world
from tests.support.operate.page_orders import BY_ANN, TOKEN, sent
from tests.support.operate.prometheus_text import parse

_TOPIC = "several-clusters.orders"


def _cluster(folder: Path, broker: EmbeddedBroker, *, lag: int) -> Path:
    """The configuration of the job of a cluster, named after its folder, with tables and a topic for orders."""
    folder.mkdir()
    file, name = folder / "lagwise.toml", folder.name
    write_config(file, broker.bootstrap_servers, folder / "tables")
    more = (
        f'[cluster]\nname = "{name}"\n[control]\ncommands_topic = "{_TOPIC}"\n'
        '[serve]\ntoken = "env:LAGWISE_PAGE_TOKEN"\n'
    )
    file.write_text(file.read_text(encoding="utf-8") + more, encoding="utf-8")
    create_topics(broker.bootstrap_servers, {_TOPIC: 1})
    cluster_world(folder / "tables", name, lag=lag)
    return file


def _orders(file: Path) -> list[tuple[str, str, bool]]:
    """Cluster, group, and whether it is paused, as the command finds them on the brokers of this file."""
    found = json.loads(CliRunner().invoke(command, ["orders", "-o", "json", "--config", str(file)]).stdout)
    return [(row["cluster"], row["group"], row["paused"]) for row in found]


def test_orders_reach_the_brokers_of_their_cluster_and_one_unreadable_root_leaves_the_other(
    broker: EmbeddedBroker,
    forged_broker: EmbeddedBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAGWISE_PAGE_TOKEN", TOKEN)
    east = _cluster(tmp_path / "east", broker, lag=20)
    west = _cluster(tmp_path / "west", forged_broker, lag=50)
    found = find_several([], [east, west])
    first, *others = (deployment(one, found[0].config.serve) for one in found)
    app = build_app(first.tables, first.config, first.desk, others=others)
    pause = {"order": "pause", **BY_ANN}

    both = json.loads(ask(app, "/api/v1/groups").text)["groups"]
    paused = sent(app, "/order?id=billing&cluster=west", pause)
    after_one = [_orders(file) for file in (east, west)]
    (tmp_path / "east" / "tables").rename(tmp_path / "away")
    page, samples = ask(app, "/"), parse(ask(app, "/metrics").text)
    paused_blindly = sent(app, "/order?id=billing&cluster=east", pause)

    assert [(row["cluster"], row["lag"]) for row in both if row["group_id"] == "billing"] == [
        ("east", 20),
        ("west", 50),
    ]
    assert paused.status == 200, paused.text
    assert after_one == [[], [("west", "billing", True)]]
    assert page.status == 200
    assert "<strong>east:</strong> <strong>Not available" in page.text
    assert 'href="/group?id=billing&amp;cluster=west"' in page.text
    labels = {"cluster": "west", "cluster_name": "west", "group": "billing"}
    assert samples.value("kafka_consumergroup_group_sum_lag", **labels) == 50
    assert samples.value("lagwise_tables_readable", cluster="east") == 0
    # Its brokers are there: a pause does not need the tables.
    assert paused_blindly.status == 200, paused_blindly.text
    assert _orders(east) == [("east", "billing", True)]
