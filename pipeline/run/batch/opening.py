"""The first steps of a batch: whose turn it is, at what time, and which records it reads."""

import logging

import pyarrow as pa
from pyspark.sql import DataFrame

from pipeline.clock import now_ms
from pipeline.decode import log_offsets, records
from pipeline.decode.shares import Decoded, as_frame, together
from pipeline.decode.step import SUMMARISED, summarise
from pipeline.errors import BrokerUnavailableError, TopicMissingError
from pipeline.fold.owners import count_assigned
from pipeline.kafka.client import unresolved
from pipeline.kafka.sources.log_offsets.settings import settings_of
from pipeline.kafka.sources.records.consumer import ReadSettings
from pipeline.run.batch import intake
from pipeline.run.driver import Batch
from pipeline.run.replay import look_back
from pipeline.tables import ownership
from pipeline.tables.store import FEW_ROWS

log = logging.getLogger(__name__)

_OUTAGE_LOGGED_EVERY_MS = 60_000


def begin(batch: Batch) -> None:
    """Make sure that this driver still owns the tables, and settle the batch's clock."""
    driver, services, replay = batch.driver, batch.services, batch.driver.replay
    ownership.check(services.store, services.owner)
    if replay.is_first:
        past = look_back(services.store, query_id=replay.query_id, batch_id=batch.batch_id)
        batch.written |= past.written
        replay.at_ms = past.at_ms
        driver.memory.evaluated_at_ms = past.decided_at_ms
    batch.is_replay = "topic_offsets" in batch.written
    if batch.is_replay:
        batch.stamp = services.store.stamp("topic_offsets")
        batch.at_ms = batch.clock.at_ms
    else:
        # Time that goes back would make ages and rates negative; it stands still instead.
        batch.at_ms = max(now_ms(), replay.at_ms + 1)
    replay.at_ms = batch.at_ms


def choose_records(batch: Batch) -> None:
    """Ask the leaders where their logs end, and choose what the batch reads; without any answer it does nothing."""
    try:
        intake.choose(batch)
    except TopicMissingError:
        raise
    except BrokerUnavailableError as error:
        batch.is_skipped = True
        _log_outage(batch, error)


def _log_outage(batch: Batch, error: BrokerUnavailableError) -> None:
    progress, config = batch.driver.progress, batch.services.config
    if batch.at_ms - progress.outage_logged_ms >= _OUTAGE_LOGGED_EVERY_MS:
        progress.outage_logged_ms = batch.at_ms
        log.warning(
            "Kafka is away; the tables keep what was known",
            extra={
                "bootstrap_servers": config.kafka.properties["bootstrap.servers"],
                "error": str(error),
                "next_attempt_in_s": config.trigger.interval_s,
            },
        )


def decode_records(batch: Batch) -> None:
    """Ask for log offsets, read and decode records, keep both for the steps to come, and say what was in them."""
    _keep(batch, _read(batch))
    batch.summary = summarise(batch.arrow(*SUMMARISED))


def _read(batch: Batch) -> Decoded:
    services, config = batch.services, batch.services.config
    spark = services.store.spark
    settings = ReadSettings(properties=unresolved(config), timeout_s=config.source.request_timeout_s)
    read = records.read(spark, batch.intake.spans, settings, services.filters)
    if batch.is_replay:
        # Its first run has asked, and written down what it was answered.
        return read
    return together(spark, log_offsets.read(spark, settings_of(config)), read)


def _keep(batch: Batch, rows: Decoded) -> None:
    """On the driver, when that and the tables are small; with Spark otherwise."""
    store = batch.services.store
    partitions = store.count("topic_offsets")
    are_tables_small = partitions <= FEW_ROWS and _are_lags_small(batch)
    if isinstance(rows, pa.Table):
        is_little = rows.num_rows <= FEW_ROWS
    else:
        # The first batch of all does not know how many partitions there are.
        is_little = partitions > 0 and _records(batch) <= FEW_ROWS
    if are_tables_small and is_little:
        batch.here = rows.toArrow() if isinstance(rows, DataFrame) else rows
        return
    batch.decoded = as_frame(store.spark, rows).persist()
    if are_tables_small and batch.decoded.count() <= FEW_ROWS:
        batch.here = batch.decoded.toArrow()
        batch.decoded.unpersist()
        batch.decoded = None


def _records(batch: Batch) -> int:
    return sum(span.end - span.start for span in batch.intake.spans)


def _are_lags_small(batch: Batch) -> bool:
    store = batch.services.store
    if store.count("partition_lag") > FEW_ROWS:
        return False
    # Members may be given any number of partitions of topics that nobody wants to know of.
    return count_assigned(store.arrow("consumer_groups", ["members"])["members"]) <= FEW_ROWS
