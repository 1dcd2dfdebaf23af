"""The step that writes first: the brokers' answers about topics, with their times."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.missing_topics import missing_topics
from pipeline.kafka.client import unresolved
from pipeline.kafka.list_offsets.leaders import leaders_of
from pipeline.kafka.sources.log_offsets import topics_gone
from pipeline.lag.settings import TopicSettings
from pipeline.row_keys import PARTITION_KEY
from pipeline.run.batch.in_tasks import Folding, rows_by, write_folded
from pipeline.run.batch.intake import Settled
from pipeline.run.rows import without
from pipeline.run.tasks.tables import TopicFold


def store_topic_offsets(batch: Settled) -> tuple[str, ...]:
    """The batch's first write: what the brokers answered, and when; the topics come out whose log offsets are kept."""
    answers = batch.read.decoded.kind("log_offset")
    stored = batch.services.store.arrow("topic_offsets", ["topic", "deleted_at"])
    topics = tuple(rows_by("topic", stored.filter(pc.is_null(stored["deleted_at"])), answers))
    if not batch.is_replay:
        _fold(batch, answers, rows_by("topic", stored, answers))
    return topics


def _fold(batch: Settled, answers: pa.Table, rows: Mapping[str, int]) -> None:
    unwanted = None if batch.driver.replay.is_new_cluster else _unwanted(batch)
    fold = TopicFold(
        cluster=batch.services.cluster,
        unwanted=unwanted,
        keep_days=batch.services.config.history.keep_days,
        settings=_settings(batch, unwanted, answers),
    )
    write_folded(
        batch, Folding(name="topic_offsets", key="topic", reads=("topic_offsets",), fold=fold), answers, rows
    )


def _settings(batch: Settled, unwanted: tuple[str, ...] | None, answers: pa.Table) -> TopicSettings:
    left = _left_of_missing(batch, unwanted, answers)
    return TopicSettings(
        at_ms=batch.stamp.at_ms,
        batch_id=batch.stamp.batch_id,
        listing_error=batch.read.summary.listing_error,
        half_life_ms=batch.services.config.rates.half_life_s * 1000,
        remaining=left.remaining,
        unconfirmed=left.unconfirmed,
    )


def _left_of_missing(
    batch: Settled, unwanted: tuple[str, ...] | None, answers: pa.Table
) -> topics_gone.Found:
    """What the brokers say of topics that a complete listing did not contain whole."""
    if not batch.read.summary.is_listed or batch.read.summary.listing_error is not None:
        return topics_gone.Found()
    config = batch.services.config
    stored = batch.services.store.arrow("topic_offsets", [*PARTITION_KEY, "deleted_at"])
    return topics_gone.confirm_gone(
        leaders_of(unresolved(config)),
        missing_topics(without(stored, "topic", unwanted), answers),
        timeout_s=config.source.request_timeout_s,
    )


def _unwanted(batch: Settled) -> tuple[str, ...]:
    """Stored topics that are no longer wanted: filters change with a start only."""
    if batch.past is None:
        return ()
    names = batch.services.store.arrow("topic_offsets", ["topic"])["topic"].unique().to_pylist()
    return tuple(name for name in names if not batch.services.config.source.wants_topic(name))
