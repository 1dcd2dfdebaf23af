"""Planning in Spark's tasks, each for a share of the groups."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import task_sizes
from pipeline.arrow_stream import unpacked
from pipeline.planning.memory import PlanMemory
from pipeline.planning.step import DECIDED_ARROW, PlanSettings
from pipeline.run.driver import Driver
from pipeline.run.spark.session import attempts_of_tasks
from pipeline.run.tasks.deciding import DECIDED, READS, DecidingTask, share
from pipeline.tables.store import Store


def decide_all(driver: Driver, settings: PlanSettings, *, only: tuple[str, ...] | None) -> pa.Table:
    """`planning.step.make_plans` of the tables as they are.

    Args:
        driver: Its session, its tables, and its memory of the decisions before.
        settings: See `PlanSettings`.
        only: Groups to decide about; None for all.
    """
    store = driver.services.store
    weights = _rows_by_group(store, only)
    if not weights:
        return DECIDED_ARROW.empty_table()
    shares = task_sizes.deciding(weights, cores=driver.parallelism)
    task = DecidingTask(
        storage_options=driver.services.config.tables.storage_options,
        reads=store.files(READS),
        settings=settings,
        attempts=attempts_of_tasks(driver.spark),
    )
    driver.describe(settings.batch_id, f"decide {len(weights)} groups")
    given = pa.Table.from_batches([share(groups, _part(driver.memory, groups)) for groups in shares])
    decided = driver.spark.createDataFrame(given).mapInArrow(task, schema=DECIDED).toArrow()["decided"]
    return pa.concat_tables(map(unpacked, decided)).sort_by("group_id")


def _rows_by_group(store: Store, only: tuple[str, ...] | None) -> dict[str, int]:
    """How many partitions each of these groups, or each group, has rows of; 0 for one without commits."""
    wanted = None if only is None else pc.field("group_id").isin(pa.array(only, pa.string()))
    names = store.arrow("consumer_groups", ["group_id"], wanted)["group_id"].to_pylist()
    counted = store.arrow("partition_lag", ["group_id"], wanted)["group_id"].value_counts()
    return dict.fromkeys(names, 0) | {one["values"]: one["counts"] for one in counted.to_pylist()}


def _part(memory: PlanMemory, groups: Iterable[str]) -> PlanMemory:
    names = set(groups)
    return PlanMemory(
        published={name: one for name, one in memory.published.items() if name in names},
        states={name: one for name, one in memory.states.items() if name in names},
    )
