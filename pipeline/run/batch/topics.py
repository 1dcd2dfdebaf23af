"""The step that writes first: what the brokers say of topics, and when."""

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.missing_topics import missing_topics
from pipeline.kafka.client import unresolved
from pipeline.kafka.list_offsets.leaders import leaders_of
from pipeline.kafka.sources.log_offsets import topics_gone
from pipeline.lag.logs import TopicSettings
from pipeline.row_keys import PARTITION_KEY
from pipeline.run.batch.in_tasks import Folding, rows_by, write_folded
from pipeline.run.batch.writes import is_new_cluster
from pipeline.run.driver import Batch
from pipeline.run.rows import wanted_topics
from pipeline.run.tasks.tables import TopicFold


def store_topic_offsets(batch: Batch) -> None:
    """The batch's first write: what the brokers answered, and when."""
    if "topic_offsets" in batch.written:
        return
    answers = batch.decoded.kind("log_offset")
    unwanted = None if is_new_cluster(batch) else _unwanted(batch)
    fold = TopicFold(
        cluster=batch.services.cluster,
        unwanted=unwanted,
        keep_days=batch.services.config.history.keep_days,
        settings=_settings(batch, unwanted, answers),
    )
    stored = batch.services.store.arrow("topic_offsets", ["topic", "deleted_at"])
    alive = stored.filter(pc.is_null(stored["deleted_at"]))
    batch.driver.tables.topics = tuple(rows_by("topic", alive, answers))
    rows = rows_by("topic", stored, answers)
    write_folded(batch, Folding(name="topic_offsets", key="topic", fold=fold), answers, rows)


def _settings(batch: Batch, unwanted: tuple[str, ...] | None, answers: pa.Table) -> TopicSettings:
    left = _left_of_missing(batch, unwanted, answers)
    return TopicSettings(
        at_ms=batch.clock.at_ms,
        batch_id=batch.batch_id,
        listing_error=batch.summary.listing_error,
        half_life_ms=batch.services.config.rates.half_life_s * 1000,
        remaining=left.remaining,
        unconfirmed=left.unconfirmed,
    )


def _left_of_missing(batch: Batch, unwanted: tuple[str, ...] | None, answers: pa.Table) -> topics_gone.Found:
    """What the brokers say of topics that a complete listing did not contain whole."""
    if not batch.summary.is_listed or batch.summary.listing_error is not None:
        return topics_gone.Found()
    config = batch.services.config
    stored = batch.services.store.arrow("topic_offsets", [*PARTITION_KEY, "deleted_at"])
    return topics_gone.confirm_gone(
        leaders_of(unresolved(config)),
        missing_topics(wanted_topics(stored, unwanted), answers),
        timeout_s=config.source.request_timeout_s,
    )


def _unwanted(batch: Batch) -> tuple[str, ...]:
    """Stored topics that are no longer wanted: filters change with a start only."""
    if not batch.driver.replay.is_first:
        return ()
    names = batch.services.store.arrow("topic_offsets", ["topic"])["topic"].unique().to_pylist()
    return tuple(name for name in names if not batch.services.config.source.wants_topic(name))
