"""The first steps of a batch: whose turn it is, at what time, and which records it reads."""

import logging

from pipeline.clock import now_ms
from pipeline.decode import log_offsets, records
from pipeline.decode.decoded import together
from pipeline.decode.step import SUMMARISED, summarise
from pipeline.errors import BrokerUnavailableError, TopicMissingError
from pipeline.kafka.client import unresolved
from pipeline.kafka.sources.log_offsets.settings import settings_of
from pipeline.kafka.sources.records.consumer import ReadSettings
from pipeline.run.batch import intake
from pipeline.run.driver import Batch
from pipeline.run.replay import look_back
from pipeline.tables.owner import ownership

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
        batch.outage = str(error)
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
    """Ask for log offsets, read and decode records, and say what was in them."""
    services, config = batch.services, batch.services.config
    settings = ReadSettings(properties=unresolved(config), timeout_s=config.source.request_timeout_s)
    batch.decoded = records.read(batch.driver.spark, batch.intake.spans, settings, services.filters)
    if not batch.is_replay:
        # The first run of a replay has asked, and written down what it was answered.
        answers = log_offsets.read(batch.driver.spark, settings_of(config))
        batch.decoded = together([batch.decoded, answers])
    batch.summary = summarise(batch.decoded.kind(*SUMMARISED))
