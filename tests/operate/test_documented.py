"""What monitoring.md prints is taken by Prometheus and Alertmanager, and does what it says."""

import json
import re
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.operate.prometheus import configured, installed
from tests.support.operate.monitoring import HOME
from tests.support.operate.serving import serving
from tests.support.operate.table_world import World
from tests.support.waiting import wait_until

_PAGE = HOME.parents[1] / "deploy" / "docs" / "monitoring.md"
_QUICK = "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"


def printed() -> str:
    """The scrape configuration of the page."""
    found = re.search(r"^    scrape_configs:\n(?:    .*\n)+", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return dedent(found[0]).replace("[alerts.yaml]", f"[{HOME / 'alerts.yaml'}]")


def world(root: Path) -> World:
    made = World(root)
    made.write("partition_lag", {"lag": 5}, {"lag": 7, "partition": 1}, {"group_id": "other", "lag": 30})
    made.complete()
    return made


def answer(rows: list[dict[str, Any]]) -> list[float]:
    return [float(row["value"][1]) for row in rows]


def test_printed_configuration_gives_every_sample_a_namespace(tmp_path: Path) -> None:
    tables = world(tmp_path / "tables")
    with serving("--tables", str(tables.root)) as served:
        text = printed().replace("127.0.0.1:8000", served.url.removeprefix("http://"))
        with configured(_QUICK + text, tmp_path) as running:
            selected = 'kafka_consumergroup_group_sum_lag{namespace="kafka"}'
            wait_until(
                lambda: sorted(answer(running.query(selected))) == [12, 30], what="the labelled samples"
            )
            assert running.query('kafka_consumergroup_lag{namespace=""}') == []


def test_two_served_pages_count_every_group_once(tmp_path: Path) -> None:
    tables = world(tmp_path / "tables")
    board = json.loads((HOME / "fleet.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    with serving("--tables", str(tables.root)) as one, serving("--tables", str(tables.root)) as other:
        targets = ", ".join(f'"{served.url.removeprefix("http://")}"' for served in (one, other))
        text = printed().replace('"127.0.0.1:8000"', targets)
        with configured(_QUICK + text, tmp_path) as running:
            plain = "sum(kafka_consumergroup_group_sum_lag)"
            wait_until(lambda: answer(running.query(plain)) == [84], what="both, counted twice")
            (total,) = (expr for expr in asked if expr.startswith("sum(") and "group_sum_lag" in expr)
            (groups,) = (expr for expr in asked if expr.startswith("count(") and "group_provisional" in expr)

            assert answer(running.query(total.replace("$cluster", "c"))) == [42]
            assert answer(running.query(groups.replace("$cluster", "c"))) == [2]


def test_example_for_alertmanager_is_sound() -> None:
    command = [installed("amtool"), "check-config", HOME / "alertmanager.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
    assert "3 inhibit rules" in done.stdout
    assert "2 receivers" in done.stdout
