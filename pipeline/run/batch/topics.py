"""The step that writes first: what the brokers say of topics, and when."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.fold import on_driver
from pipeline.fold.step import fold_topic_offsets, missing_topics
from pipeline.kafka.client import unresolved
from pipeline.kafka.list_offsets.leaders import leaders_of
from pipeline.kafka.sources.log_offsets import topics_gone
from pipeline.lag.logs import TopicSettings
from pipeline.lag.step import measure_topic_offsets, topic_offsets_of
from pipeline.run.batch.writes import is_new_cluster, write, write_measured
from pipeline.run.driver import Batch
from pipeline.tables.store import FEW_ROWS


def store_topic_offsets(batch: Batch) -> None:
    """The batch's first write: what the brokers answered, and when."""
    if "topic_offsets" in batch.written:
        return
    # So many answers the driver can hold, also of a batch whose lags it cannot; the first batch does not know how many.
    if batch.here is not None or 0 < batch.services.store.count("topic_offsets") <= FEW_ROWS:
        stored, answers = _known_here(batch), batch.arrow("log_offset")
        settings = _settings(batch, lambda: on_driver.missing_topics(stored, answers))
        measured = topic_offsets_of(on_driver.fold_topic_offsets(stored, answers), settings)
        write_measured(batch, "topic_offsets", measured)
    else:
        known, observed = _known_topics(batch), batch.kind("log_offset")
        settings = _settings(batch, lambda: missing_topics(known, observed))
        write(batch, "topic_offsets", measure_topic_offsets(fold_topic_offsets(known, observed), settings))


def _settings(batch: Batch, missing: Callable[[], list[str]]) -> TopicSettings:
    left = _left_of_missing(batch, missing)
    return TopicSettings(
        at_ms=batch.clock.at_ms,
        batch_id=batch.batch_id,
        listing_error=batch.summary.listing_error,
        half_life_ms=batch.services.config.rates.half_life_s * 1000,
        remaining=left.remaining,
        unconfirmed=left.unconfirmed,
    )


def _left_of_missing(batch: Batch, missing: Callable[[], list[str]]) -> topics_gone.Found:
    """What the brokers say of topics that a complete listing did not contain whole."""
    if not batch.summary.is_listed or batch.summary.listing_error is not None:
        return topics_gone.Found()
    config = batch.services.config
    return topics_gone.confirm_gone(
        leaders_of(unresolved(config)), missing(), timeout_s=config.source.request_timeout_s
    )


def _known_topics(batch: Batch) -> DataFrame:
    """The table, less what is about another cluster or about topics that are no longer wanted."""
    stored = batch.services.store.read("topic_offsets")
    if is_new_cluster(batch):
        return stored.limit(0)
    unwanted = _unwanted(batch)
    return stored.where(~F.col("topic").isin(unwanted)) if unwanted else stored


def _known_here(batch: Batch) -> pa.Table:
    """As `_known_topics`, on the driver."""
    stored = batch.services.store.arrow("topic_offsets")
    if is_new_cluster(batch):
        return stored.slice(0, 0)
    unwanted = pa.array(_unwanted(batch), pa.string())
    return stored.filter(pc.invert(pc.is_in(stored["topic"], value_set=unwanted)))


def _unwanted(batch: Batch) -> list[str]:
    """Stored topics that are no longer wanted: filters change with a start only."""
    if not batch.driver.replay.is_first:
        return []
    names = batch.services.store.arrow("topic_offsets", ["topic"])["topic"].unique().to_pylist()
    return [name for name in names if not batch.services.config.source.wants_topic(name)]
