"""Tasks: decide about groups.

A task reads the rows of its groups itself. To bring them there by Spark's joins would cost five exchanges, which for
ten groups take ten times as long as deciding.
"""

import gc
import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from pipeline.arrow_stream import packed
from pipeline.config.secret_values import resolve
from pipeline.fold.control_messages import about_plans, handed_over
from pipeline.planning import step as plan
from pipeline.planning.memory import PlanMemory
from pipeline.planning.reasons import task_failed
from pipeline.source.deadline import TABLES_S, within
from pipeline.source.last_attempt import failures_before_last
from pipeline.tables.reading import read_together
from pipeline.tables.schemas import ACKS, CONSUMER_GROUPS, ORDERS
from pipeline.tables.table_files import SentTables, TableFiles

DECIDED = t.StructType([t.StructField("decided", t.BinaryType())])
"""Result of a task: its packed decisions. Each has a list of moves, and Spark would unpack thousands of them."""

_GROUP_S = 1.0
"""Maximum average time to plan a group; the largest groups take tenths of a second."""
_OF_GROUPS = {
    # Whole, but for the records that other columns are made from.
    **{
        name: tuple(column for column in schema.fieldNames() if column != "records")
        for name, schema in (("consumer_groups", CONSUMER_GROUPS), ("acks", ACKS), ("orders", ORDERS))
    },
    "partition_lag": plan.LAG_COLUMNS,
}
READS = (*_OF_GROUPS, "topic_offsets")
"""Tables that decisions are made from."""


def share(group_ids: list[str], memory: PlanMemory) -> pa.RecordBatch:
    """Input of a task: groups and their memory; a row, so that no task carries all of it."""
    return pa.RecordBatch.from_pydict(
        {"share": pa.array([pickle.dumps((group_ids, memory))], pa.large_binary())}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingTask:
    """Plans the groups of one task; created on the driver, called on the executors."""

    storage_options: Mapping[str, str]
    """As configured; references to secrets are resolved where the tables are read."""
    reads: Mapping[str, TableFiles]
    """`READS`, at the versions that the driver knows."""
    settings: plan.PlanSettings
    attempts: int
    """Attempts per task before Spark fails its job."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row of `DECIDED` for each `share`; the last attempt plans nothing, so that crashes end no query."""
        failures = failures_before_last(self.attempts)
        for batch in batches:
            for packed_share in batch["share"].to_pylist():
                group_ids, memory = pickle.loads(packed_share)  # noqa: S301 - the driver's own, as this task is
                if failures is None:
                    with within(TABLES_S + _GROUP_S * len(group_ids)):
                        decided = packed(self._decide(group_ids, memory))
                else:
                    reason = task_failed(failures)
                    decided = packed(plan.abstain(group_ids, self.settings, memory, reason=reason))
                yield pa.RecordBatch.from_pydict({"decided": pa.array([decided], pa.binary())})

    def _decide(self, group_ids: list[str], memory: PlanMemory) -> pa.Table:
        """The decisions about these groups."""
        tables = SentTables(self.reads, resolve(self.storage_options))
        wanted = pc.field("group_id").isin(pa.array(group_ids, pa.string()))
        groups, acks, orders, lags = read_together(tables, _OF_GROUPS, wanted)
        topics = pa.array(sorted(plan.subscribed_topics(groups)), pa.string())
        stored = plan.Stored(
            groups=groups,
            lags=lags,
            topic_offsets=tables.read(
                "topic_offsets", columns=plan.TOPIC_COLUMNS, where=pc.field("topic").isin(topics)
            ),
            acks=about_plans(acks),
            moved=handed_over(acks, groups),
            orders=orders,
        )
        with _collections_off():
            return plan.make_plans(stored, group_ids, self.settings, memory)


@contextmanager
def _collections_off() -> Iterator[None]:
    """Without garbage collections: decisions stay until the last one is made, and there are no cycles among them.

    Collections would look through all of them again and again, which takes a twelfth of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
