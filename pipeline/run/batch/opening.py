"""The first steps of a batch: whose turn it is, what the source has read for it, and at what time."""

import json
import logging
import time

from pipeline import errors
from pipeline.arrow_columns import moment
from pipeline.clock import duration, now_ms
from pipeline.errors import (
    BrokerUnavailableError,
    PipelineError,
    TablesChangedError,
    TopicMissingError,
)
from pipeline.run.batch import intake
from pipeline.run.driver import Batch
from pipeline.run.progress import ReadProgress
from pipeline.run.replay import look_back, why_passed_over
from pipeline.source.decoded import PACKED, pack, unpack
from pipeline.source.offset import SourceOffset, from_json
from pipeline.source.summary import SUMMARISED, summarise
from pipeline.tables.owner import ownership

log = logging.getLogger(__name__)

_OUTAGE_LOGGED_EVERY_MS = 60_000
_CLOCK_TOLERATED_MS = 5_000
"""Clocks of two hosts of which each has been the driver's may differ by so much."""
_CLOCK_LOGGED_EVERY_S = 3600
_MOST_PASSED_OVER = 2


def begin(batch: Batch) -> None:
    """Make sure that this driver still owns the tables, and read the clock."""
    replay = batch.driver.replay
    ownership.check(batch.services.store, batch.services.owner)
    if replay.is_first:
        batch.past = look_back(batch.services.store)
        replay.at_ms = batch.past.at_ms
        batch.driver.memory.evaluated_at_ms = batch.past.decided_at_ms
        batch.driver.memory.evaluated_at_s = time.monotonic()
    # Time that goes back would make ages and rates negative; it stands still instead.
    here_ms = now_ms()
    batch.at_ms = max(here_ms, replay.at_ms + 1)
    batch.clock_trouble = _clock_trouble(here_ms, replay.at_ms)
    if batch.clock_trouble is not None:
        _say_clock_trouble(batch.driver.progress, batch.clock_trouble)


def _clock_trouble(here_ms: int, newest_ms: int) -> str | None:
    """Why the times of this batch cannot be measured; None when they can."""
    if newest_ms - here_ms <= _CLOCK_TOLERATED_MS:
        return None
    here, newest = (f"{moment(at_ms).as_py():%Y-%m-%d %H:%M:%S}Z" for at_ms in (here_ms, newest_ms))
    return (
        f"this host's clock says {here}, and the newest batch in the tables is of {newest}, "
        f"{duration(newest_ms - here_ms)} later: one of the two clocks was wrong; until this one has passed that time, "
        "ages and rates of lag are not right"
    )


def _say_clock_trouble(progress: ReadProgress, why: str) -> None:
    now_s = time.monotonic()
    if now_s - progress.clock_logged_s < _CLOCK_LOGGED_EVERY_S:
        return
    progress.clock_logged_s = now_s
    log.warning(
        "the clock is behind the tables, and no plan is made",
        extra={
            "reason": why,
            "hint": "set this host's clock; if that was ahead when the tables were written, wait, or restore a backup",
        },
    )


def read_source(batch: Batch) -> None:
    """Have Spark's tasks read what the source has chosen, decode it and ask for log ends: one job."""
    if batch.frame is None:
        raise AssertionError("a batch has the rows of its source")
    batch.driver.describe(batch.batch_id, "read")
    batch.decoded = unpack(batch.frame.mapInArrow(pack, schema=PACKED).toArrow())
    batch.summary = summarise(batch.decoded.kind(*SUMMARISED))


def settle_offset(batch: Batch) -> None:
    """Take in what the source has chosen; pass the batch over where it was chosen from other tables than these.

    Raises:
        PipelineError: What kept the source from choosing, but for an outage of Kafka, in which the batch does nothing.
        TablesChangedError: See `_pass_over`.
    """
    (row,) = batch.decoded.kind("intake")["reason"].to_pylist()
    offset = from_json(json.loads(row))
    batch.passed_over = _why_passed_over(batch, offset)
    if offset is None or batch.passed_over is not None:
        _pass_over(batch, is_own=offset is not None and offset.chosen_by == batch.driver.replay.query)
        return
    batch.driver.replay.passed_over = 0
    if offset.failure is not None:
        _fail(batch, *offset.failure)
        return
    batch.tick = offset.tick
    # Brokers that do not answer make choosing long: the figures are of its beginning, not of now.
    batch.at_ms = max(batch.driver.replay.at_ms + 1, min(batch.at_ms, offset.tick))
    if batch.past is not None:
        batch.written |= batch.past.holding(offset.tick)
        batch.stamp = batch.past.stamps.get("topic_offsets")
    batch.is_replay = "topic_offsets" in batch.written
    if batch.is_replay:
        batch.at_ms = batch.clock.at_ms
    batch.driver.replay.at_ms = batch.at_ms
    intake.choose(batch, offset)


def _pass_over(batch: Batch, *, is_own: bool) -> None:
    """Say so; what a query before this one has left is usual after a start.

    Raises:
        TablesChangedError: It happens again: the tables are not those that this driver wrote last.
    """
    replay = batch.driver.replay
    replay.passed_over += is_own
    if replay.passed_over >= _MOST_PASSED_OVER:
        raise TablesChangedError(str(batch.passed_over))
    log.log(
        logging.WARNING if is_own else logging.INFO,
        "a batch that Spark began is passed over, and the next one reads on from the tables",
        extra={"batch_id": batch.batch_id, "reason": batch.passed_over},
    )


def _why_passed_over(batch: Batch, offset: SourceOffset | None) -> str | None:
    if offset is None:
        return "its offset is another source's, which an earlier version had"
    if offset.failure is not None:
        # Spark runs it again in the query that follows, where the cause may be gone.
        is_own = offset.chosen_by == batch.driver.replay.query
        return (
            None if is_own else f"it was chosen before this query began, and that failed: {offset.failure[1]}"
        )
    begun = None if batch.past is None else batch.past.stamps.get("topic_offsets")
    return why_passed_over(offset, batch.driver.progress.stamp, begun, query=batch.driver.replay.query)


def _fail(batch: Batch, name: str, text: str) -> None:
    kind = getattr(errors, name, PipelineError)
    error: PipelineError = kind(text)
    if isinstance(error, BrokerUnavailableError) and not isinstance(error, TopicMissingError):
        batch.outage = text
        _log_outage(batch, error)
        return
    raise error


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
