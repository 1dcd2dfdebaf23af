"""Tasks: how the rows of each latest table come to be, from what is stored and what a batch has read."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.asked import NOBODY, Asked, with_absent
from pipeline.fold.commits import fold_commits
from pipeline.fold.control_messages import handed_over
from pipeline.fold.owners import assigned_topics, held_partitions, left_groups
from pipeline.fold.topic_offsets import fold_topic_offsets
from pipeline.lag.settings import LagSettings, TopicSettings
from pipeline.lag.step import LOG_COLUMNS, lag_of, topic_offsets_of
from pipeline.run.rows import of_cluster, remembered_topics, without
from pipeline.tables.reading import Readable, all_of, read_together
from pipeline.tables.schemas import ACKS, GROUP_STATE, LAG_HISTORY, PARTITION_LAG, TOPIC_OFFSETS

IS_DUE = pc.field("history_at") == pc.field("updated_at")
"""Rows of `partition_lag` that go into the history (`lag.history_turn`)."""


_OF_GROUPS = {
    "partition_lag": PARTITION_LAG.fieldNames(),
    # Not what they are made from, which takes more room than all else.
    "consumer_groups": ["group_id", *GROUP_STATE, "offsets_partition", "group_position"],
    "acks": ACKS.fieldNames(),
}
READ_FOR_LAG = (*_OF_GROUPS, "topic_offsets")
"""Tables that `LagFold` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFold:
    """Fold the answers of a batch into the stored log offsets, for some topics or for all."""

    cluster: str
    unwanted: tuple[str, ...] | None
    keep_days: int
    """Time for which the row of a deleted partition stays."""
    settings: TopicSettings

    def __call__(self, tables: Readable, answers: pa.Table, where: pc.Expression | None) -> pa.Table:
        """Return `schemas.TOPIC_OFFSETS` of the topics for which `where` holds."""
        stored = tables.read("topic_offsets", columns=TOPIC_OFFSETS.fieldNames(), where=where)
        wanted = without(stored, "topic", self.unwanted)
        kept = remembered_topics(wanted, at_ms=self.settings.at_ms, keep_days=self.keep_days)
        folded = fold_topic_offsets(kept, answers)
        return of_cluster(self.cluster, topic_offsets_of(folded, self.settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class LagFold:
    """Fold the commits of a batch into the stored lags, for some groups or for all."""

    cluster: str
    ghosts: tuple[str, ...] | None
    reread: tuple[int, ...]
    beheaded: tuple[int, ...]
    settings: LagSettings
    asked: Asked = NOBODY

    def __call__(self, tables: Readable, commits: pa.Table, where: pc.Expression | None) -> pa.Table:
        """Return `schemas.PARTITION_LAG` of the groups for which `where` holds."""
        stored, groups, acks = read_together(tables, _OF_GROUPS, where)
        named = _topics(stored, commits, assigned_topics(groups))
        logs = tables.read("topic_offsets", columns=LOG_COLUMNS, where=pc.field("topic").isin(named))
        # Members may be given any number of partitions of topics that nobody knows.
        known = _topics(stored, commits, logs)
        stored = without(stored, "group_id", self.ghosts)
        folded = fold_commits(
            stored,
            with_absent(stored, commits, self.asked, logs),
            held_partitions(groups, handed_over(acks, groups), known),
            reread=self.reread,
            behind=self.settings.behind,
            beheaded=self.beheaded,
            asked=self.asked,
        )
        return of_cluster(self.cluster, lag_of(folded, logs, self.settings, left=left_groups(groups)))


def history_rows(tables: Readable, _new: pa.Table, where: pc.Expression | None) -> pa.Table:
    """Return `schemas.LAG_HISTORY` of the due stored lags, of the groups for which `where` holds."""
    columns = [name for name in LAG_HISTORY.fieldNames() if name != "date"]
    rows = tables.read("partition_lag", columns=columns, where=all_of(IS_DUE, where))
    # All rows are of this batch, and so of the day of its clock.
    return rows.append_column("date", rows["updated_at"].cast(pa.date32()))


def _topics(*tables: pa.Table) -> pa.Array:
    return pa.chunked_array(
        [chunk for table in tables for chunk in table["topic"].chunks], pa.string()
    ).unique()
