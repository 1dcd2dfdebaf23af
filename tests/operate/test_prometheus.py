"""A real Prometheus scrapes `lagwise serve`: it takes every sample, with the names and numbers that the tables have."""

import json
import subprocess
from pathlib import Path

from tests.operate.prometheus import Prometheus, installed, prometheus
from tests.support.operate.prometheus_text import parse
from tests.support.operate.serving import Serving, serving
from tests.support.operate.table_world import World
from tests.support.waiting import wait_until
from tests.unit.pipeline.operate.serve.test_partitions import HOSTILE

_CHANGES = {"lagwise_tables_age_seconds"}


def assert_it_has_what_is_served(running: Prometheus, served: Serving) -> None:
    """All of a page that does not change any more, and nothing else."""
    page = {key: v for key, v in parse(served.get("/metrics").text).values.items() if key[0] not in _CHANGES}
    wait_until(
        lambda: {key: v for key, v in running.series().items() if key[0] not in _CHANGES} == page,
        what="a scrape of the page",
    )


def test_hostile_names_come_through(tmp_path: Path) -> None:
    world = World(tmp_path / "tables")
    rows = [
        {
            "group_id": name,
            "topic": "t",
            "client_id": name,
            "client_host": name,
            "lag": lag,
            "lag_seconds": lag / 7,
        }
        for lag, name in enumerate(HOSTILE)
    ]
    world.write("partition_lag", *rows)
    world.complete()
    with serving("--tables", str(world.root)) as served, prometheus(served.url, tmp_path) as running:
        assert_it_has_what_is_served(running, served)

        found = {
            one["metric"]["group"]: float(one["value"][1])
            for one in running.query("kafka_consumergroup_group_lag")
        }
        assert found == {row["group_id"]: row["lag"] for row in rows}

        world.replace("partition_lag", *rows[1:])
        gone = {"consumergroup": HOSTILE[0], "topic": "t", "partition": "0"}
        wait_until(
            lambda: ("kafka_consumergroup_lag", frozenset(gone.items())) not in running.series(),
            what="the next scrape without the deleted group",
        )


def test_demo_is_scraped_as_the_command_shows_it(demo: World, tmp_path: Path) -> None:
    with serving("--tables", str(demo.root)) as served, prometheus(served.url, tmp_path) as running:
        assert_it_has_what_is_served(running, served)

        rows = json.loads(demo.run("lag", "-o", "json").stdout)
        expected = {
            (row["group_id"], row["topic"], str(row["partition"])): row["lag"]
            for row in rows
            if row["lag"] is not None
        }
        found = {
            (one["metric"]["consumergroup"], one["metric"]["topic"], one["metric"]["partition"]): float(
                one["value"][1]
            )
            for one in running.query("kafka_consumergroup_lag")
        }
        assert expected
        assert found == expected
        assert [one["metric"] for one in running.query('lagwise_plan_state{group="billing"} == 1')]
        _assert_linted(served)


def _assert_linted(served: Serving) -> None:
    """Promtool has nothing against lagwise's own names; those of the others are as they are."""
    text = served.get("/metrics").body
    done = subprocess.run(
        [installed("promtool"), "check", "metrics"], input=text, capture_output=True, check=False
    )
    complaints = [line for line in (done.stdout + done.stderr).decode().splitlines() if "lagwise_" in line]
    assert complaints == []
