"""Fold and measure rows of which a test names only the columns it is about."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from pipeline.fold import owners
from pipeline.fold.commits import fold_commits
from pipeline.fold.control_messages import HANDED_OVER
from pipeline.fold.topic_offsets import fold_topic_offsets
from pipeline.lag.settings import HistoryPace, LagSettings, TopicSettings
from pipeline.lag.step import lag_of, topic_offsets_of
from tests.support.job.frames import NOW_MS, arrow, decoded_arrow, decoded_rows

Rows = Iterable[dict[str, Any]]

LAGS = LagSettings(
    at_ms=NOW_MS,
    batch_id=7,
    behind=(),
    half_life_ms=60_000,
    most_gap_ms=150_000,
    allowed_lag=0,
    history=HistoryPace(interval_ms=60_000, max_gap_ms=900_000),
)


def folded_commits(
    stored: Rows,
    batch: Rows,
    groups: Rows = (),
    *,
    reread: Sequence[int] = (),
    behind: Sequence[int] = (),
    beheaded: Sequence[int] = (),
) -> pa.Table:
    """`fold_commits`."""
    return fold_commits(
        arrow("partition_lag", *stored),
        commits_of(batch),
        _held(arrow("consumer_groups", *groups)),
        reread=reread,
        behind=behind,
        beheaded=beheaded,
    )


def commits_of(batch: Rows) -> pa.Table:
    """The newest commits and tombstones, and after them what brokers answer."""
    rows = list(batch)
    is_read = [not row["row_kind"].startswith("answer") for row in rows]
    read = decoded_rows(*(row for row, is_one in zip(rows, is_read, strict=True) if is_one)).newest()
    commits = read.kind("commit", "tombstone")
    answers = decoded_arrow(*(row for row, is_one in zip(rows, is_read, strict=True) if not is_one))
    return pa.concat_tables([commits, answers.select(commits.column_names)])


def _held(groups: pa.Table) -> pa.Table:
    """Of topics that are all known."""
    topics = owners.assigned_topics(groups)["topic"].combine_chunks()
    return owners.held_partitions(groups, HANDED_OVER.empty_table(), topics)


def measured_topics(stored: Rows, now: Rows, settings: TopicSettings) -> pa.Table:
    """`schemas.TOPIC_OFFSETS` of what was stored and what was answered."""
    folded = fold_topic_offsets(arrow("topic_offsets", *stored), decoded_arrow(*now))
    return topic_offsets_of(folded, settings)


def measured_lags(
    stored: Rows,
    logs: Rows,
    settings: LagSettings,
    *,
    batch: Rows = (),
    groups: Rows = (),
    reread: Sequence[int] = (),
) -> pa.Table:
    """`schemas.PARTITION_LAG` of what was stored and what was read."""
    folded = folded_commits(stored, batch, groups, reread=reread, behind=settings.behind)
    left = owners.left_groups(arrow("consumer_groups", *groups))
    return lag_of(folded, arrow("topic_offsets", *logs), settings, left=left)
