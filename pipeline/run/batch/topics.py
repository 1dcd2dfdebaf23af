"""The step that writes first: what the brokers say of topics, and when."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.fold.step import fold_topic_offsets, missing_topics
from pipeline.kafka.client import unresolved
from pipeline.kafka.list_offsets.leaders import leaders_of
from pipeline.kafka.sources.log_offsets import topics_gone
from pipeline.lag.step import TopicSettings, measure_topic_offsets
from pipeline.run.batch.writes import write
from pipeline.run.driver import Batch
from pipeline.run.replay import Start
from pipeline.run.services import Services


def store_topic_offsets(batch: Batch) -> None:
    """The batch's first write: what the brokers answered, and when."""
    if "topic_offsets" in batch.written:
        return
    known, observed = _known_topics(batch.services, batch.driver.replay.start), batch.kind("log_offset")
    left = _left_of_missing(batch, known, observed)
    measured = measure_topic_offsets(
        fold_topic_offsets(known, observed),
        TopicSettings(
            at_ms=batch.clock.at_ms,
            batch_id=batch.batch_id,
            listing_error=batch.summary.listing_error,
            half_life_ms=batch.services.config.rates.half_life_s * 1000,
            remaining=left.remaining,
            unconfirmed=left.unconfirmed,
        ),
    )
    write(batch, "topic_offsets", measured)


def _left_of_missing(batch: Batch, known: DataFrame, observed: DataFrame) -> topics_gone.Found:
    """What the brokers say of topics that a complete listing did not contain whole."""
    if not batch.summary.is_listed or batch.summary.listing_error is not None:
        return topics_gone.Found()
    config = batch.services.config
    return topics_gone.confirm_gone(
        leaders_of(unresolved(config)),
        missing_topics(known, observed),
        timeout_s=config.source.request_timeout_s,
    )


def _known_topics(services: Services, start: Start | None) -> DataFrame:
    """The table, less what is about another cluster or about topics that are no longer wanted."""
    stored = services.store.read("topic_offsets")
    if start is None:
        return stored
    if start.is_new_cluster:
        return stored.limit(0)
    names = [row["topic"] for row in stored.select("topic").distinct().collect()]
    unwanted = [name for name in names if not services.config.source.wants_topic(name)]
    return stored.where(~F.col("topic").isin(unwanted)) if unwanted else stored
