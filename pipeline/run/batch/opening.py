"""The first steps of a batch: whose turn it is, what the source has read for it, and at what time."""

import json
import logging
import time
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark.sql import DataFrame

from pipeline import errors
from pipeline.clock import now_ms
from pipeline.errors import (
    BrokerUnavailableError,
    PipelineError,
    TablesChangedError,
    TopicMissingError,
)
from pipeline.run.batch import clock
from pipeline.run.driver import Driver
from pipeline.run.replay import FIRST_WRITTEN, Past, look_back, why_passed_over
from pipeline.source.decoded import PACKED, Decoded, pack, unpack
from pipeline.source.offset import SourceOffset, from_json
from pipeline.source.summary import SUMMARISED, Summary, summarise
from pipeline.tables.owner import ownership
from pipeline.tables.stamp import Stamp

log = logging.getLogger(__name__)

_OUTAGE_LOGGED_EVERY_MS = 60_000
_MOST_PASSED_OVER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A batch of a driver that owns the tables."""

    batch_id: int
    at_ms: int
    """Its clock, unless the source gives an earlier time."""
    clock_trouble: str | None
    """Why the times that it measures, or epochs, are not right."""
    past: Past | None = None
    """Contents of the tables when it began; None except for the first batch after a start."""


def begin(driver: Driver, batch_id: int) -> Begun:
    """Make sure that this driver still owns the tables, and read the clock."""
    replay, past = driver.replay, None
    ownership.check(driver.services.store, driver.services.owner)
    if replay.is_first:
        past = look_back(driver.services.store)
        replay.at_ms = past.at_ms
        driver.memory.evaluated_at_ms = past.decided_at_ms
        driver.memory.evaluated_at_s = time.monotonic()
    here_ms = now_ms()
    trouble = clock.trouble(here_ms, replay.at_ms, driver.memory)
    if trouble is not None:
        clock.say_behind(driver.progress, trouble)
    # Time that goes back would make ages and rates negative; it stands still instead.
    return Begun(batch_id=batch_id, at_ms=max(here_ms, replay.at_ms + 1), clock_trouble=trouble, past=past)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Results of Spark's read tasks for a batch."""

    offset: SourceOffset | None
    """Offset that the source has chosen; None for another source, from an earlier version."""
    decoded: Decoded
    summary: Summary


def read_source(driver: Driver, batch_id: int, frame: DataFrame) -> Read:
    """Have Spark's tasks read what the source has chosen, decode it and ask for log ends: one job."""
    driver.describe(batch_id, "read")
    decoded = unpack(frame.mapInArrow(pack, schema=PACKED).toArrow())
    if driver.services.config.source.asks_groups:
        decoded = decoded.newest_log_ends()
    (offset,) = decoded.kind("intake")["reason"].to_pylist()
    return Read(
        offset=from_json(json.loads(offset)), decoded=decoded, summary=summarise(decoded.kind(*SUMMARISED))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Begun):
    """A batch that was chosen from the tables as they are; one that runs again has the clock of its first run."""

    offset: SourceOffset

    @property
    def first_run(self) -> Stamp | None:
        """The stamp that its first write had in a run before; None for a batch that does not run again."""
        return None if self.past is None else self.past.holding(self.offset.tick).get(FIRST_WRITTEN)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A batch that must not write."""

    reason: str


@dataclass(frozen=True, slots=True)
class Outage:
    """A batch without an answer from any broker: it knows no more than the tables, and does nothing."""

    reason: str


Skipped: TypeAlias = PassedOver | Outage


def settle_offset(driver: Driver, begun: Begun, offset: SourceOffset | None) -> Chosen | Skipped:
    """Adopt what the source has chosen, or skip the batch if it was chosen from other tables than these.

    Raises:
        PipelineError: A failure other than an outage of Kafka kept the source from choosing.
        TablesChangedError: See `_passed_over`.
    """
    replay = driver.replay
    past = begun.past
    why = _why_passed_over(driver, offset, None if past is None else past.stamps.get(FIRST_WRITTEN))
    if offset is None or why is not None:
        is_own = offset is not None and offset.chosen_by == replay.query
        return _passed_over(driver, begun.batch_id, str(why), is_own=is_own)
    replay.passed_over = 0
    if offset.failure is not None:
        return _outage(driver, begun.at_ms, *offset.failure)
    # Brokers that do not answer make choosing long: the figures are of its beginning, not of now.
    here_ms = max(replay.at_ms + 1, min(begun.at_ms, offset.tick))
    chosen = Chosen(
        batch_id=begun.batch_id, at_ms=here_ms, clock_trouble=begun.clock_trouble, offset=offset, past=past
    )
    if chosen.first_run is not None:
        chosen = replace(chosen, at_ms=chosen.first_run.at_ms)
    replay.at_ms = chosen.at_ms
    return chosen


def _passed_over(driver: Driver, batch_id: int, why: str, *, is_own: bool) -> PassedOver:
    """Say so; what a query before this one has left is usual after a start.

    Raises:
        TablesChangedError: It happens again: the tables are not those that this driver wrote last.
    """
    driver.replay.passed_over += is_own
    if driver.replay.passed_over >= _MOST_PASSED_OVER:
        raise TablesChangedError(why)
    log.log(
        logging.WARNING if is_own else logging.INFO,
        "a batch that Spark began is skipped; the next one continues from the tables",
        extra={"batch_id": batch_id, "reason": why},
    )
    return PassedOver(why)


def _why_passed_over(driver: Driver, offset: SourceOffset | None, begun: Stamp | None) -> str | None:
    if offset is None:
        return "its offset is from another source, which an earlier version had"
    query = driver.replay.query
    if offset.failure is None:
        cluster_id = driver.services.cluster_id
        return why_passed_over(offset, driver.progress.stamp, begun, query=query, cluster_id=cluster_id)
    if offset.chosen_by == query:
        return None
    # Spark runs it again in the query that follows, where the cause may be gone.
    return f"it was chosen before this query began, and choosing it failed: {offset.failure[1]}"


def _outage(driver: Driver, at_ms: int, name: str, text: str) -> Outage:
    """Say so, once a minute.

    Raises:
        PipelineError: It is no outage.
    """
    kind = getattr(errors, name, PipelineError)
    error: PipelineError = kind(text)
    if not isinstance(error, BrokerUnavailableError) or isinstance(error, TopicMissingError):
        raise error
    progress, config = driver.progress, driver.services.config
    if at_ms - progress.outage_logged_ms >= _OUTAGE_LOGGED_EVERY_MS:
        progress.outage_logged_ms = at_ms
        log.warning(
            "Kafka is unavailable; the tables keep the last known values",
            extra={
                "bootstrap_servers": config.kafka.properties["bootstrap.servers"],
                "error": text,
                "next_attempt_in_s": config.trigger.interval_s,
            },
        )
    return Outage(text)
