"""A batch that has read less than it was to read, is cut short behind any step, and runs again or never again."""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from pipeline.kafka.positions import End, Span
from pipeline.kafka.sources.log_offsets.settings import Share
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.assembly import build_source
from pipeline.run.batch import steps
from pipeline.run.batch.opening import PassedOver
from pipeline.run.batch.steps import Done, Outcome
from pipeline.run.replay import ReplayContext
from pipeline.source import partitions
from pipeline.source.offset import Json
from pipeline.source.partitions import Part, parts_of
from pipeline.source.planner import Pace, Planner
from pipeline.tables.owner import ownership
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import CONTROL, idle_driver
from tests.support.job.frames import NOW_MS, at, member
from tests.support.job.steps import STEP_NAMES, CutShortError, WatchedSteps
from tests.support.spark.read_frames import rows_frame

Row = dict[str, Any]
ACKS, COMMANDS = CONTROL.acks_topic, CONTROL.commands_topic
_COUNTED = {"group": "group", "commit": "commit", "bad": "bad", "ack": "ack", "orders": "orders"}


def commit(group: str, partition: int, offset: int) -> Row:
    fields = {"committed_offset": offset, "commit_timestamp_ms": NOW_MS}
    return {"row_kind": "commit", "group_id": group, "partition": partition} | fields


def group(name: str, generation: int) -> Row:
    members = [member("a", assigned={"t": [0, 1]})]
    fields = {"state": "Stable", "protocol_type": "consumer", "generation": generation, "members": members}
    return {"row_kind": "group", "group_id": name, "group_type": "classic", **fields}


def bad(kind: str) -> Row:
    return {"row_kind": "bad", "timestamp": at(0), "kind": kind, "reason": "why"}


def ack(name: str) -> Row:
    fields = {"kind": "accepted", "id": name, "member_id": name, "generation": 4, "epoch": 1}
    return {"row_kind": "ack", "group_id": "g", "ack": {**fields, "acked_at": at(0)}}


def order(name: str) -> Row:
    return {"row_kind": "orders", "group_id": name, "orders": {"paused": True, "ordered_at": at(0)}}


LOGS: dict[str, list[Row]] = {
    OFFSETS_TOPIC: [
        *(group("g", 3), commit("g", 0, 10), bad("first"), commit("h", 0, 20)),
        *(group("g", 4), commit("g", 0, 40), commit("g", 1, 50), bad("second"), group("h", 1)),
    ],
    ACKS: [ack("a"), ack("b"), ack("c")],
    COMMANDS: [order("g"), order("h")],
}
SHORT = {OFFSETS_TOPIC: 4, ACKS: 1, COMMANDS: 1}
"""How many records of each log a read that comes short takes: others of each kind are left."""


@pytest.fixture(autouse=True, scope="module")
def brokers() -> Iterator[None]:
    """One share of log ends, without asking for topics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions.ask, "shares", lambda *_, **__: [Share(topics=())])
        yield


class Begun(NamedTuple):
    """A batch as Spark's checkpoint has it."""

    batch_id: int
    offset: Json


class CutSteps(WatchedSteps):
    """The steps; what follows one of them never runs."""

    def __init__(self, monitor: Any, *, behind: str | None) -> None:
        super().__init__(monitor)
        self._behind = behind

    def behind(self, name: str) -> None:
        if name == self._behind:
            raise CutShortError


class World:
    """Logs of one partition each, a job's tables, and drivers one after the other, as after kills."""

    def __init__(self, root: str) -> None:
        create_tables(root, retention_hours=1, storage_options={})
        self.root = root
        self.now_ms = NOW_MS
        self.asked = 0
        self.batches = 0
        self.start()

    def start(self) -> None:
        """A driver that has not run a batch, and a source that has chosen none."""
        owner = f"driver-{self.now_ms}"
        store = ownership.acquire(Store(self.root, term=0), cluster="local", owner=owner, now_ms=self.now_ms)
        self.driver = idle_driver(
            store=store,
            owner=owner,
            replay=ReplayContext(),
            stamp=store.stamp("partition_lag"),
            ghosts=SimpleNamespace(strangers=set(), restart=lambda: None, found=lambda *_, **__: ()),
            confirmations=SimpleNamespace(commits=lambda *_, **__: [], seconded=lambda _: ()),
            publisher=SimpleNamespace(unavailable=lambda _: None, publish=lambda _: None),
        )
        self.settings = build_source(
            self.driver.services, query=self.driver.replay.query, once=False, attempts=4
        )
        self.planner = Planner(
            self.settings, ask=self._ends, stamps=store.stamp, pace=Pace(0), now_ms=lambda: self.now_ms
        )

    def choose(self) -> Begun:
        """The next batch."""
        self.now_ms += 1_000
        offset = self.planner.next_offset()
        assert offset is not None
        self.batches += 1
        return Begun(self.batches - 1, offset.to_json())

    def run(self, begun: Begun, *, short: bool = False, behind: str | None = None) -> Outcome:
        """The batch, by its tasks and the driver.

        Args:
            begun: As it was chosen, by whichever source.
            short: Its tasks read only so much of each log as `SHORT` says.
            behind: The step behind which it is cut short.

        Raises:
            CutShortError: It was.
        """
        parts = parts_of(begun.offset, self.planner, self.settings)
        rows = [row for part in parts for row in self.rows_of(part, short=short)]
        cut = partial(CutSteps, behind=behind)
        frame: Any = rows_frame(*rows)
        return steps.run(self.driver, begun.batch_id, frame, steps=cut)

    def rows_of(self, part: Part, *, short: bool = False) -> list[Row]:
        """What the task of a part hands on."""
        rows: list[Row] = []
        if part.offset is not None:
            rows.append({"row_kind": "intake", "reason": json.dumps(part.offset)})
        rows += [row for span in part.spans for row in self._records(span, short=short)]
        if part.share is not None:
            self.asked += 1
            rows += [{"row_kind": "listing", "topic": None}, *(self._log_end(n) for n in (0, 1))]
        return rows

    def _ends(self) -> Any:
        return {(name, 0): End(log_start=0, stable=len(log), high=len(log)) for name, log in LOGS.items()}

    def _log_end(self, partition: int) -> Row:
        fields = {"topic_id": "A", "log_start_offset": 0, "log_end_offset": 100 + self.asked}
        return {"row_kind": "log_offset", "partition": partition, "observed_at_ms": self.now_ms, **fields}

    @staticmethod
    def _records(span: Span, *, short: bool) -> Iterator[Row]:
        end = min(span.end, span.start + SHORT[span.topic]) if short else span.end
        for position, record in enumerate(LOGS[span.topic][span.start : end], start=span.start):
            where = {"offsets_partition": 0, "position": position}
            yield record | where | ({"topic": span.topic, "offset": position} if "reason" in record else {})
            yield {"row_kind": "count", "kind": _COUNTED[record["row_kind"]], "count": 1}
        yield {"row_kind": "read", "topic": span.topic, "position": end, "leader_epoch": 1}

    def go_on(self) -> None:
        """Batches until everything is read, and one more."""
        for _ in range(3):
            assert isinstance(self.run(self.choose()), Done)

    def told(self) -> dict[str, list[tuple[Any, ...]]]:
        """What the tables say of what was read."""
        columns = {
            "partition_lag": ("group_id", "topic", "partition", "committed_offset", "provisional"),
            "consumer_groups": ("group_id", "generation", "provisional"),
            "acks": ("id", "position"),
            "orders": ("group_id", "position"),
            "quarantine": ("topic", "offset", "kind"),
            "topic_offsets": ("topic", "partition"),
        }
        store = self.driver.services.store
        return {
            table: sorted((tuple(row[name] for name in names) for row in store.rows(table, names)), key=repr)
            for table, names in columns.items()
        }


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    """What the tables say when nothing happens."""
    world = World(str(tmp_path_factory.mktemp("calm")))
    world.go_on()
    told = world.told()
    assert {name: len(rows) for name, rows in told.items()} == {
        "partition_lag": 4,
        "consumer_groups": 2,
        "acks": 3,
        "orders": 2,
        "quarantine": 2,
        "topic_offsets": 2,
    }
    return told


BEHIND = [name for name in STEP_NAMES if name == "settle" or name.startswith(("store_", "make_", "record_"))]
"""The steps that write, and the one before them."""


@pytest.mark.parametrize("behind", BEHIND)
def test_batch_that_read_short_and_was_cut_short_loses_nothing_when_all_can_be_read(
    tmp_path: Path, calm: dict[str, list[tuple[Any, ...]]], behind: str
) -> None:
    world = World(str(tmp_path))
    chosen = world.choose()
    with pytest.raises(CutShortError):
        world.run(chosen, short=True, behind=behind)
    begun = world.driver.services.store.stamp("topic_offsets")
    world.start()

    again = world.run(chosen)

    if begun is None:
        assert isinstance(again, PassedOver)
    else:
        assert isinstance(again, Done)
        # As far as the first run came, though more could be read, and as of its log ends.
        reached = again.batch.read.summary.reached
        assert {span.topic: span.end for span in begun.spans} == SHORT
        assert {topic: one.position.offset for (topic, _), one in reached.items()} == SHORT
        assert (again.batch.intake.spans, again.stamp.positions) == (begun.spans, begun.positions)
        assert world.asked == 1
    world.go_on()
    assert world.told() == calm


@pytest.mark.parametrize("behind", BEHIND)
def test_checkpoint_that_is_lost_with_a_batch_under_way_costs_nothing(
    tmp_path: Path, calm: dict[str, list[tuple[Any, ...]]], behind: str
) -> None:
    world = World(str(tmp_path))
    with pytest.raises(CutShortError):
        world.run(world.choose(), short=True, behind=behind)
    world.start()
    world.batches = 0

    world.go_on()

    assert world.told() == calm


def test_older_checkpoint_writes_nothing_to_newer_tables_and_the_next_batch_reads_on(
    tmp_path: Path, calm: dict[str, list[tuple[Any, ...]]]
) -> None:
    world = World(str(tmp_path))
    old = world.choose()
    assert isinstance(world.run(old, short=True), Done)
    assert isinstance(world.run(world.choose(), short=True), Done)
    world.start()
    store = world.driver.services.store
    before = {name: store.stamp(name) for name in world.told()}

    passed = world.run(old)

    assert isinstance(passed, PassedOver)
    assert "chosen from tables as of empty" in passed.reason
    assert {name: store.stamp(name) for name in world.told()} == before
    world.go_on()
    assert world.told() == calm


def test_newer_checkpoint_writes_nothing_to_older_tables_and_the_next_batch_reads_on(
    tmp_path: Path, calm: dict[str, list[tuple[Any, ...]]]
) -> None:
    world, older = World(str(tmp_path / "tables")), tmp_path / "older"
    assert isinstance(world.run(world.choose(), short=True), Done)
    shutil.copytree(world.root, older)
    assert isinstance(world.run(world.choose(), short=True), Done)
    newer = world.choose()
    shutil.rmtree(world.root)
    older.rename(world.root)
    world.start()
    store = world.driver.services.store
    before = {name: store.stamp(name) for name in world.told()}

    passed = world.run(newer)

    assert isinstance(passed, PassedOver)
    assert passed.reason.startswith("it was chosen from tables as of")
    assert {name: store.stamp(name) for name in world.told()} == before
    world.go_on()
    assert world.told() == calm
