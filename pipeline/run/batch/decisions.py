"""Where plans are made: on the driver while the tables are small, else on the executors.

A task reads the rows of its groups itself. To bring them there by Spark's joins would cost five exchanges, which for
ten groups take ten times as long as deciding.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pipeline.arrow_stream import packed, unpacked
from pipeline.config.secret_values import resolve
from pipeline.fold.control_messages import about_plans, handed_over
from pipeline.planning import step as plan
from pipeline.planning.memory import PlanMemory
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import ACKS, CONSUMER_GROUPS, ORDERS
from pipeline.tables.store import Store, absolute

_FEW_PARTITIONS = 20_000
"""Rows of `partition_lag`: so many partitions are decided about in less time than a Spark job takes to start."""
_WHOLE = {
    name: tuple(schema.fieldNames())
    for name, schema in (("consumer_groups", CONSUMER_GROUPS), ("acks", ACKS), ("orders", ORDERS))
}
"""Tables of which decisions need everything."""


def decide_all(
    spark: SparkSession,
    store: Store,
    storage_options: Mapping[str, str],
    settings: plan.PlanSettings,
    memory: PlanMemory,
    *,
    only: tuple[str, ...] | None,
) -> pa.Table:
    """`planning.step.make_plans` of the tables as they are.

    Args:
        spark: Session with executors.
        store: The tables.
        storage_options: As configured; references to secrets are resolved where the tables are read.
        settings: See `PlanSettings`.
        memory: Of the decisions before.
        only: Groups to decide about; None for all.
    """
    # Executors have working folders of their own.
    task = _Task(root=absolute(store.root), storage_options=storage_options, settings=settings)
    weights = _rows_by_group(store, None if only is None else _is_any_of(only))
    if sum(weights.values()) <= _FEW_PARTITIONS:
        return task.decide(list(weights), memory)
    shares = _shares(weights, spark.sparkContext.defaultParallelism)
    worker = _Worker(task, [(groups, _part(memory, groups)) for groups in shares])
    tasks = spark.range(0, len(shares), 1, len(shares))
    decided = tasks.mapInArrow(worker, schema="decided binary").toArrow()["decided"]
    return pa.concat_tables(map(unpacked, decided)).sort_by("group_id")


def _is_any_of(group_ids: Iterable[str]) -> pc.Expression:
    return pc.field("group_id").isin(pa.array(group_ids, pa.string()))


def _rows_by_group(store: Store, wanted: pc.Expression | None) -> dict[str, int]:
    """How many partitions each of the wanted groups has rows of; 0 for one without commits."""
    names = store.arrow("consumer_groups", ["group_id"], wanted)["group_id"].to_pylist()
    counted = store.arrow("partition_lag", ["group_id"], wanted)["group_id"].value_counts()
    return dict.fromkeys(names, 0) | {one["values"]: one["counts"] for one in counted.to_pylist()}


def _shares(weights: Mapping[str, int], count: int) -> list[list[str]]:
    """The groups in at most `count` shares of about as many partitions each: the next largest to the least."""
    shares: list[list[str]] = [[] for _ in range(min(count, len(weights)))]
    loads = [0] * len(shares)
    for group, rows in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
        least = loads.index(min(loads))
        shares[least].append(group)
        loads[least] += rows + 1
    return shares


def _part(memory: PlanMemory, groups: Iterable[str]) -> PlanMemory:
    names = set(groups)
    return PlanMemory(
        published={name: one for name, one in memory.published.items() if name in names},
        unseen_epochs=memory.unseen_epochs,
        states={name: one for name, one in memory.states.items() if name in names},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What is the same for every share of the groups."""

    root: str
    storage_options: Mapping[str, str]
    settings: plan.PlanSettings

    def decide(self, group_ids: list[str], memory: PlanMemory) -> pa.Table:
        """The decisions about these groups; reads the newest version of the tables."""
        tables = Tables(self.root, resolve(self.storage_options))
        wanted = _is_any_of(group_ids)
        groups, acks, orders = (
            tables.read(name, columns=columns, where=wanted) for name, columns in _WHOLE.items()
        )
        topics = pa.array(sorted(plan.subscribed_topics(groups)), pa.string())
        stored = plan.Stored(
            groups=groups,
            lags=tables.read("partition_lag", columns=plan.LAG_COLUMNS, where=wanted),
            topic_offsets=tables.read(
                "topic_offsets", columns=plan.TOPIC_COLUMNS, where=pc.field("topic").isin(topics)
            ),
            acks=about_plans(acks),
            moved=handed_over(acks, groups),
            orders=orders,
        )
        return plan.make_plans(stored, group_ids, self.settings, memory)


class _Worker:
    """What one task does; made on the driver, runs on the executors.

    Its decisions come as a row of bytes: each has a list of moves, and Spark would take thousands of them apart.
    """

    def __init__(self, task: _Task, shares: list[tuple[list[str], PlanMemory]]) -> None:
        self.task = task
        self.shares = shares

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                decided = packed(self.task.decide(*self.shares[number]))
                yield pa.RecordBatch.from_pydict({"decided": pa.array([decided], pa.binary())})
