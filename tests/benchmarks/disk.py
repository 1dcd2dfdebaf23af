"""What the tables take on a disk at defaults, by batches of a large cluster that are really written.

The steps of a batch from its first write to its last, over what `disk_world` has decoded for it, and maintenance in the
end, as often as by default. Bytes are those of the files; bytes a day, and how many are held, are extrapolated: nobody
waits a day, and maintenance goes by the age of files, which time in this world does not change.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from deltalake import DeltaTable

from pipeline.config.model import Config
from pipeline.local.jars import resolve_for_spark
from pipeline.run.batch.control_messages import store_control_messages
from pipeline.run.batch.groups import store_group_history, store_groups
from pipeline.run.batch.lag import store_history, store_lag
from pipeline.run.batch.plans.evaluation import make_plans
from pipeline.run.batch.plans.history import record_decisions
from pipeline.run.batch.plans.publication import publish_plans
from pipeline.run.batch.quarantine import store_quarantine
from pipeline.run.batch.topics import store_topic_offsets
from pipeline.run.driver import Driver
from pipeline.run.spark.session import PACKAGES, build_session
from pipeline.source.summary import Summary
from pipeline.tables.schemas import TABLES, Table
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.benchmarks.disk_world import TICK_MS, DiskWorld
from tests.support.job import maintenance
from tests.support.job.batches import KnownConfigs, batch_of, idle_driver, later, stamp_of
from tests.support.job.steps import run_steps

Say = Callable[[str], None]

_STEPS = (
    store_topic_offsets,
    store_group_history,
    store_groups,
    store_control_messages,
    store_quarantine,
    store_lag,
    store_history,
    make_plans,
    record_decisions,
    publish_plans,
)
_WARM_UP = 20
"""Batches: then the lists of samples and of commits are full, and plans may begin."""
_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000
_GB = 1e9
_OF_PLANS = ("plan_state", "member_rates", "recommendations")
_SMALL = 500
"""Groups."""
_OWNER = "planner_state"
"""Written once by each driver."""


@dataclass(slots=True, kw_only=True)
class _Disk:
    """The files of one table."""

    table: Table
    root: str
    _known: set[Path] = field(default_factory=set)

    def new_bytes(self) -> tuple[int, int]:
        """Data, and log with its checkpoints, that were written since this was asked last."""
        files = {path for path in (Path(self.root) / self.table.name).rglob("*") if path.is_file()}
        new, self._known = files - self._known, files
        log = sum(path.stat().st_size for path in new if "_delta_log" in path.parts)
        return sum(path.stat().st_size for path in new) - log, log

    def newest(self) -> tuple[int, int]:
        """Rows and bytes of the newest version."""
        files = DeltaTable(f"{self.root}/{self.table.name}").get_add_actions()
        return sum(files["num_records"].to_pylist()), sum(files["size_bytes"].to_pylist())


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Bytes by table of 5,000 groups with 300,000 partitions in 5,000 topics; of a tenth in a quick run.

    Tables of decisions are measured at a tenth, and taken ten times: to decide takes ten times as long as to write.
    """
    size = _SMALL if quick else 10 * _SMALL
    world, figures = _measured(size, say, plans=False)
    _, of_few = _measured(_SMALL, say, plans=True)
    figures |= {name: _times(of_few[name], size // _SMALL) for name in _OF_PLANS}
    for name, of_table in figures.items():
        say(f"{name}: {of_table}")
    header = ["table", *figures["partition_lag"]]
    rows = [[name, *of_table.values()] for name, of_table in figures.items()]
    return {
        "rows": world.rows,
        "asked": world.asked,
        "groups": world.groups,
        "by_table": figures,
        "tables": [{"header": header, "rows": rows}],
    }


def _measured(groups: int, say: Say, *, plans: bool) -> tuple[DiskWorld, dict[str, dict[str, float]]]:
    """What the tables take of so many groups, by name."""
    config, world = Config(), DiskWorld(groups=groups, topics=groups, partitions=20, topics_each=3)
    batches = config.tables.upkeep_every_batches
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as root, _driver(root, config) as driver:
        disks = [_Disk(table=one, root=root) for one in TABLES if one.name != _OWNER]
        # No evaluation is due while lists fill up, or at all.
        driver.memory.evaluated_at_ms = world.now_ms + (_WARM_UP if plans else 1000) * TICK_MS
        for number in range(_WARM_UP):
            _batch(driver, world, number, say)
        rows_before = [(disk.new_bytes(), disk.newest()[0])[1] for disk in disks]
        for number in range(_WARM_UP, _WARM_UP + batches):
            _batch(driver, world, number, say)
        written = [disk.new_bytes() for disk in disks]
        maintenance.run(root, at_ms=world.now_ms, keep_days=config.history.keep_days, storage_options={})
        figures = {
            disk.table.name: _figures(disk, config, before, *by_step)
            for disk, before, by_step in zip(disks, rows_before, written, strict=True)
        }
    return world, figures


def _times(figures: dict[str, float], factor: int) -> dict[str, float]:
    """Of as many times the groups; bytes of a row stay, and those of the log hardly grow."""
    return {
        name: figure if name in {"bytes a row", "log kB a batch"} else round(figure * factor, 3)
        for name, figure in figures.items()
    }


def _figures(disk: _Disk, config: Config, rows_before: int, data: int, log: int) -> dict[str, float]:
    """Of one table; the last three are extrapolated from the batches between two runs of maintenance."""
    batches = config.tables.upkeep_every_batches
    rows, size = disk.newest()
    per_row = size / max(1, rows)
    batches_a_day = _DAY_MS / (config.trigger.interval_s * 1000)
    # Past retention, but not removed before maintenance runs again.
    replaced = config.tables.retention_hours * _HOUR_MS / TICK_MS + batches
    added_a_day = 0.0 if disk.table.is_latest else (rows - rows_before) / batches * batches_a_day
    compacted = 0.0 if disk.table.is_latest else size * batches / (batches + _WARM_UP)
    return {
        "rows": rows,
        "bytes a row": round(per_row, 1),
        "log kB a batch": round(log / batches / 1e3, 1),
        "written GB a day": round((data + log + compacted) / batches * batches_a_day / _GB, 3),
        "held GB for readers": round((data + log) / batches * replaced / _GB, 3),
        "added GB a day": round(added_a_day * per_row / _GB, 3),
    }


@contextmanager
def _driver(root: str, config: Config) -> Iterator[Driver]:
    jars = resolve_for_spark(PACKAGES)
    spark = build_session({"spark.master": "local[2]", "spark.driver.memory": "2g"}, jars=jars)
    create_tables(root, retention_hours=config.tables.retention_hours, storage_options={})
    configs = KnownConfigs()
    configs.max_record_bytes = config.control.max_record_bytes
    sends_all = SimpleNamespace(unavailable=lambda _: None, publish=lambda _: None)
    yield idle_driver(
        spark=spark,
        config=config,
        store=Store(root, term=1),
        configs=configs,
        publisher=sends_all,
        replay=later(),
    )
    spark.stop()


def _batch(driver: Driver, world: DiskWorld, number: int, say: Say) -> None:
    is_first = number == 0
    if not is_first:
        world.advance()
    counts = {"commit": world.rows} | ({"group": world.groups} if is_first else {})
    batch = batch_of(
        driver,
        stamp=stamp_of(batch_id=number, at_ms=world.now_ms, positions=world.positions()),
        decoded=world.events(first=is_first),
        summary=Summary(counts=counts, is_listed=True),
    )
    seconds = run_steps(batch, *_STEPS).seconds_by_step
    say(f"batch {number}: {sum(seconds.values()):.1f} s")
