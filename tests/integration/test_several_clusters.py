"""Two brokers and the tables of both on one page: figures and orders of each are its own, also when one cannot be read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.config.model import Config
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.operate.cli.app import app as command
from pipeline.operate.cli.locations import find_several
from pipeline.operate.cli.serve import deployment
from pipeline.operate.serve.app import build_app
from tests.support.asgi import ask
from tests.support.broker import create_topics, produce
from tests.support.group_records import lopsided_group
from tests.support.inject import inject
from tests.support.job import read_table, running, write_config
from tests.support.page_orders import BY_ANN, TOKEN, sent
from tests.support.prometheus_text import parse

_GROUP = "several-clusters"


def _file(folder: Path, bootstrap: str, name: str) -> Path:
    """The configuration of one cluster's job, which its page has as well."""
    folder.mkdir()
    file = folder / "lagwise.toml"
    write_config(file, bootstrap, folder / "tables")
    more = f'[cluster]\nname = "{name}"\n[serve]\ntoken = "env:LAGWISE_PAGE_TOKEN"\n'
    file.write_text(file.read_text(encoding="utf-8") + more, encoding="utf-8")
    return file


def _observed(bootstrap: str, config: Config, *, records: int) -> None:
    create_topics(bootstrap, {_GROUP: 3})
    produce(bootstrap, _GROUP, dict.fromkeys(range(3), records))
    inject(bootstrap, lopsided_group(_GROUP, _GROUP))
    with running(config) as job:
        job.wait(
            lambda: any(row["group_id"] == _GROUP for row in read_table(config, "partition_lag")),
            what="the group",
        )


def _paused(file: Path) -> bool | None:
    result = CliRunner().invoke(command, ["orders", "-o", "json", "--config", str(file)])
    assert result.exit_code == 0, result.output
    return {row["group"]: bool(row["paused"]) for row in json.loads(result.stdout)}.get(_GROUP)


def test_groups_of_two_clusters_on_one_page_stay_apart_and_one_alone_goes_on(
    broker: EmbeddedBroker,
    forged_broker: EmbeddedBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAGWISE_PAGE_TOKEN", TOKEN)
    east = _file(tmp_path / "east", broker.bootstrap_servers, "east")
    west = _file(tmp_path / "west", forged_broker.bootstrap_servers, "west")
    found = find_several([], [east, west])
    for one, bootstrap, records in zip(
        found, (broker.bootstrap_servers, forged_broker.bootstrap_servers), (20, 50), strict=True
    ):
        _observed(bootstrap, one.config, records=records)
    first, *others = (deployment(one, found[0].config.serve, is_one=False) for one in found)
    app = build_app(first.tables, first.config, first.desk, others=others)

    rows = {
        row["cluster"]: row["lag"]
        for row in json.loads(ask(app, "/api/v1/groups").text)["groups"]
        if row["group_id"] == _GROUP
    }
    ordered = sent(app, f"/order?id={_GROUP}&cluster=west", {"order": "pause", **BY_ANN})
    paused = [_paused(file) for file in (east, west)]
    (tmp_path / "east" / "tables").rename(tmp_path / "away")
    page, samples = ask(app, "/"), parse(ask(app, "/metrics").text)

    assert rows.keys() == {"east", "west"}
    assert rows["west"] - rows["east"] == 90
    assert ordered.status == 200, ordered.text
    assert paused == [None, True]
    assert page.status == 200
    assert "<strong>east:</strong> <strong>Not available" in page.text
    assert f'href="/group?id={_GROUP}&amp;cluster=west"' in page.text
    labels = {"cluster": "west", "cluster_name": "west", "group": _GROUP}
    assert samples.value("kafka_consumergroup_group_sum_lag", **labels) == rows["west"]
    assert samples.value("lagwise_tables_readable", cluster="east") == 0
