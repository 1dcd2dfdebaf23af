"""Tables of an earlier version, as its own code has left them: read by commands, upgraded by a driver, gone on with."""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from pipeline.clock import now_ms
from pipeline.config.model import ClusterConfig, Config
from pipeline.local.embedded import broker as embedded
from pipeline.operate.cli.app import app
from pipeline.tables.schemas import BY_NAME
from pipeline.tables.store import Store
from tests.support.brokers.broker import create_offsets_topic, create_topics, produce, small_broker
from tests.support.brokers.inject import commit_record, inject
from tests.support.brokers.traffic import control_records
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import RunningJob, eager_plan, job_config, read_table

_STORED = Path(__file__).parents[1] / "data" / "tables-2026-11-21.tar.gz"
"""See the README beside it."""
_CLUSTER_ID = "b2xkLXRhYmxlcy1vZi1hYg"
_HISTORIES = {
    "lag_history": ("group_id", "topic", "partition", "updated_at", "lag", "committed_offset", "status"),
    "recommendations": ("group_id", "created_at", "decision", "epoch", "reason", "record"),
}


def unpacked(folder: Path) -> Path:
    with tarfile.open(_STORED) as archive:
        archive.extractall(folder, filter="data")
    return folder / "tables"


def told(root: Path) -> dict[str, set[tuple[Any, ...]]]:
    """The rows of the histories."""
    return {
        name: {
            tuple(row.values())
            for row in DeltaTable(str(root / name)).to_pyarrow_table(columns=list(columns)).to_pylist()
        }
        for name, columns in _HISTORIES.items()
    }


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("lag",), "billing"),
        (("lag", "--total", "member"), "billing"),
        (("groups",), "billing"),
        (("recommendations", "--detail"), "publish"),
        (("history", "--since", "1000d"), "billing"),
        (("quarantine",), ""),
    ],
    ids=" ".join,
)
def test_commands_read_tables_of_an_earlier_version(
    command: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    root = unpacked(tmp_path)

    done = CliRunner().invoke(app, [*command, "--tables", str(root)], catch_exceptions=False)

    assert done.exit_code in {0, 1}
    assert words in done.stdout
    assert "lagwise:" not in done.stderr


class Upgraded:
    """A driver of today on the tables of then, and the cluster that they are about, with news."""

    def __init__(self, bootstrap: str, root: Path) -> None:
        self.bootstrap, self.root = bootstrap, root
        self.before = told(root)
        create_offsets_topic(bootstrap)
        create_topics(bootstrap, {"t": 4})
        produce(bootstrap, "t", dict.fromkeys(range(4), 100))
        busy, idle = member("a", "t", assigned={"t": (0, 1, 2, 3)}), member("z", "t")
        inject(
            bootstrap,
            [
                group_record("billing", busy, idle, generation=2),
                *(commit_record("billing", "t", partition, 20) for partition in range(4)),
                group_record("audit", member("m", "t", assigned={"t": (0,)})),
                commit_record("audit", "t", 0, 60),
            ],
        )
        self.messages = self._run()
        self.again = self._run()

    @property
    def config(self) -> Config:
        plan = eager_plan(dry_run=False)
        return job_config(self.bootstrap, self.root, cluster=ClusterConfig(name="same"), plan=plan)

    def _run(self) -> list[str]:
        return RunningJob(self.config, once=True).run_out()


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    root = unpacked(tmp_path_factory.mktemp("upgrade"))
    with patch.object(embedded, "new_cluster_id", lambda: _CLUSTER_ID), small_broker() as broker:
        yield Upgraded(broker.bootstrap_servers, root)


def test_upgrade_is_told_once(upgraded: Upgraded) -> None:
    said = [line for line in upgraded.messages if "rewriting a table for this version" in line]

    assert len(said) == 1
    assert "recommendations" in said[0]
    assert not [line for line in upgraded.again if "for this version" in line or "columns added" in line]


def test_every_table_has_the_columns_and_partitions_of_today(upgraded: Upgraded) -> None:
    for name, table in BY_NAME.items():
        stored = DeltaTable(str(upgraded.root / name))
        assert {field.name for field in stored.schema().fields} == set(table.schema.fieldNames()), name
        assert stored.metadata().partition_columns == list(table.partition_by), name


def test_history_is_kept_row_by_row(upgraded: Upgraded) -> None:
    after = told(upgraded.root)

    assert all(upgraded.before.values())
    for name, rows in upgraded.before.items():
        assert rows < after[name], name


def test_lag_of_today_is_right(upgraded: Upgraded) -> None:
    rows = read_table(upgraded.config, "partition_lag")

    assert {(row["group_id"], row["partition"]): row["lag"] for row in rows} == {
        **{("billing", partition): 80 for partition in range(4)},
        ("audit", 0): 40,
    }
    assert not any(row["provisional"] for row in rows)


def test_epochs_go_on_above_those_of_the_earlier_version(upgraded: Upgraded) -> None:
    earlier = {(row[0], row[3]): row[5] for row in upgraded.before["recommendations"] if row[2] == "publish"}
    sent = {(group, epoch): value for group, epoch, value in control_records(upgraded.bootstrap)}

    # Within its validity the plan of then is sent late: the topic of this cluster is new.
    assert all(sent[key] == earlier[key] for key in sent.keys() & earlier.keys())
    assert ("billing", 1) in earlier
    fresh = [epoch for group, epoch in sent.keys() - earlier.keys() if group == "billing"]
    assert fresh
    assert min(fresh) > 1


def test_terms_go_on(upgraded: Upgraded) -> None:
    """The tables know four; from then on terms are the clock's minutes."""
    assert Store(str(upgraded.root), term=0).highest_term() > now_ms() // 60_000 - 60
