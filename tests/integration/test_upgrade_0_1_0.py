"""Today's job on what release 0.1.0 has left: its tables, its checkpoint, and the cluster that both are about.

`tests/data/tables-0.1.0.tar.gz` was made by the code of commit 202c530, the last one of 0.1.0, with Spark 4.0.5; the
README beside it says how. The broker goes on with the data that 0.1.0 has read, so positions and epochs are real.
"""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable

from pipeline.clock import now_ms
from pipeline.kafka.positions import PartitionKey
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.tables.schemas import BY_NAME
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from tests.integration.test_upgrade import told
from tests.support.brokers.broker import SMALL, admin_client
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.job import RunningJob, eager_plan, job_config, read_table
from tests.support.job.undisturbed import assert_nothing_doubled, assert_one_content_per_epoch

_STORED = Path(__file__).parents[1] / "data" / "tables-0.1.0.tar.gz"
_KEPT = {
    "log.retention.ms": "-1",
    "offsets.retention.minutes": "2147483647",
    # Otherwise a day after 0.1.0 has read them tombstones may be gone, and the logs are read again from their start.
    "log.cleaner.delete.retention.ms": "3000000000000",
}
"""What is in the archive stays, however old it is."""
Lags = dict[tuple[str, str, int], int]
"""By group, topic and partition."""


def true_lags(bootstrap: str) -> Lags:
    """What the brokers themselves say, of every group that has committed."""
    found = admin_client(bootstrap)
    groups = [one.group_id for one in found.list_consumer_groups().result(timeout=30).valid]
    topics = found.list_topics(timeout=30).topics
    wanted = [(name, number) for name, topic in topics.items() for number in topic.partitions]
    return {
        (group, topic, number): end - offset
        for group in groups
        for topic, number, offset, end in _committed(bootstrap, group, wanted)
    }


def _committed(bootstrap: str, group: str, wanted: list[PartitionKey]) -> Iterator[tuple[str, int, int, int]]:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        for one in reader.committed([TopicPartition(*key) for key in wanted], timeout=30):
            if one.offset >= 0:
                _, end = reader.get_watermark_offsets(one, timeout=30)
                yield one.topic, one.partition, one.offset, end
    finally:
        reader.close()


def stamps(root: Path) -> list[Stamp]:
    """Of the batches that are in the table's log, oldest first."""
    history = DeltaTable(str(root / "partition_lag")).history()
    written = [one["userMetadata"] for one in reversed(history) if one.get("userMetadata")]
    return [Stamp.from_json(text) for text in written]


class Upgraded:
    """A run of today's job on what was left, one under new traffic, and one more when that is over."""

    def __init__(self, bootstrap: str, root: Path) -> None:
        self.bootstrap, self.root = bootstrap, root
        self.config = job_config(bootstrap, root, plan=eager_plan(dry_run=False))
        self.before = told(root)
        self.stamp = stamps(root)[-1]
        self.term = Store(str(root), term=0).highest_term()
        self.columns = {name: columns(root, name) for name in BY_NAME}
        self.said_by = {name: read_table(self.config, name) for name in ("acks", "orders")}
        self.epochs = self._epochs()
        self.first = RunningJob(self.config, once=True).run_out()
        self.lags = self.stored_lags(), true_lags(bootstrap)
        self.said_after = {name: read_table(self.config, name) for name in ("acks", "orders")}
        self.checkpoints = sorted(one.name for one in (root / "_checkpoint").iterdir())
        with Traffic(bootstrap) as traffic:
            self._under(traffic)
        self.again = RunningJob(self.config, once=True).run_out()

    def stored_lags(self) -> Lags:
        rows = [
            row for row in read_table(self.config, "partition_lag") if row["committed_offset"] is not None
        ]
        assert not any(row["provisional"] for row in rows)
        return {(row["group_id"], row["topic"], row["partition"]): row["lag"] for row in rows}

    def _epochs(self) -> dict[str, int]:
        """The newest epoch of each group on the control topic."""
        newest: dict[str, int] = {}
        for group, epoch, _ in control_records(self.bootstrap):
            newest[group] = max(epoch, newest.get(group, 0))
        return newest

    def _under(self, traffic: Traffic) -> None:
        job = RunningJob(self.config)
        job.start()
        job.wait(lambda: self._epochs()["billing"] > self.epochs["billing"], what="a plan of today")
        traffic.disturb()
        job.wait_for_batches(2)
        job.stop()
        if job.failure:
            raise job.failure


def columns(root: Path, name: str) -> set[str]:
    """Of a table as it is; none of one that is not there."""
    folder = root / name
    return {one.name for one in DeltaTable(str(folder)).schema().fields} if folder.exists() else set()


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    folder = tmp_path_factory.mktemp("upgrade")
    with tarfile.open(_STORED) as archive:
        archive.extractall(folder, filter="data")
    with EmbeddedBroker(data_dir=folder / "kafka", properties={**SMALL, **_KEPT}) as broker:
        yield Upgraded(broker.bootstrap_servers, folder / "tables")


def test_job_goes_on_from_where_0_1_0_had_read_to(upgraded: Upgraded) -> None:
    positions = {key: one.offset for key, one in (upgraded.stamp.positions or {}).items()}
    # 0.1.0 had no source, so its batches have no tick.
    read = next(one.spans for one in stamps(upgraded.root) if one.tick and one.spans)

    assert positions
    assert {span.key: span.start for span in read} == {span.key: positions[span.key] for span in read}
    assert any(span.end > span.start > 0 for span in read)
    assert not [line for line in upgraded.first if "again from its start" in line]


def test_checkpoint_of_0_1_0_is_gone_on_with_and_nothing_fails(upgraded: Upgraded) -> None:
    assert upgraded.checkpoints == ["batches"]
    assert not [line for line in (*upgraded.first, *upgraded.again) if " failed" in line]


def test_lag_is_what_kafka_has(upgraded: Upgraded) -> None:
    stored, true = upgraded.lags

    assert len(true) > len({group for group, _, _ in true}) > 1
    assert any(true.values())
    assert stored == true


def test_lag_is_what_kafka_has_after_more_traffic(upgraded: Upgraded) -> None:
    assert upgraded.stored_lags() == true_lags(upgraded.bootstrap)


def test_no_epoch_is_used_twice_and_those_of_today_are_above_those_of_0_1_0(upgraded: Upgraded) -> None:
    records = list(control_records(upgraded.bootstrap))
    old = {(row[0], row[3]) for row in upgraded.before["recommendations"] if row[2] == "publish"}
    rows = told(upgraded.root)["recommendations"] - upgraded.before["recommendations"]
    new = [(row[0], row[3]) for row in rows if row[2] == "publish"]

    assert upgraded.epochs["billing"] > 0
    assert "billing" in {group for group, _ in new}
    assert len({*new}) == len(new)
    assert not old & {*new}
    assert all(epoch > upgraded.epochs.get(group, 0) for group, epoch in new)
    assert_one_content_per_epoch(str(upgraded.root), records)


def test_history_is_kept_row_by_row_and_none_is_doubled(upgraded: Upgraded) -> None:
    after = told(upgraded.root)

    assert all(upgraded.before.values())
    for name, rows in upgraded.before.items():
        assert rows < after[name], name
    assert_nothing_doubled(str(upgraded.root))


def test_every_table_gets_the_columns_of_today(upgraded: Upgraded) -> None:
    today = {name: set(table.schema.fieldNames()) for name, table in BY_NAME.items()}

    assert any(today[name] - upgraded.columns[name] for name in ("partition_lag", "topic_offsets"))
    assert [name for name in today if today[name] - columns(upgraded.root, name)] == []


def test_what_members_have_said_is_kept_and_the_order_that_0_1_0_did_not_read_is_read(
    upgraded: Upgraded,
) -> None:
    acks, orders = ((upgraded.said_by[name], upgraded.said_after[name]) for name in ("acks", "orders"))

    assert {row["id"] for row in acks[0]} == {"m-0", "m-1"}
    assert {_said(row) for row in acks[0]} < {_said(row) for row in acks[1]}
    # Of a group the newest order stays.
    assert [[(row["group_id"], row["pause_reason"]) for row in rows] for rows in orders] == [
        [("audit", "reason 1")],
        [("audit", "reason 2")],
    ]


def _said(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("group_id", "kind", "id", "epoch", "generation", "position"))


def test_terms_go_on(upgraded: Upgraded) -> None:
    assert upgraded.term == 2
    assert Store(str(upgraded.root), term=0).highest_term() > now_ms() // 60_000 - 24 * 60
