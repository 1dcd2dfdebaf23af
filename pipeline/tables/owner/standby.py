"""Store: waiting until the driver that owns the tables is gone, without Spark and without a hold on anything.

How old the owner's heartbeat is, is measured by this process's own monotonic clock: as the time for which it
has not changed. So the clocks of two hosts need not agree.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from threading import Event
from typing import TypeAlias

from pipeline import clock
from pipeline.config.model import Config
from pipeline.config.secret_values import resolve
from pipeline.errors import MissingTableError, StoreError
from pipeline.tables.owner import heartbeat, ownership
from pipeline.tables.owner.heartbeat import Beat, Heartbeat
from pipeline.tables.reading import Tables

log = logging.getLogger(__name__)

PATIENCE_S = heartbeat.SILENT_AFTER_S
"""Taking over too early loses nothing, but costs the start of a driver."""

_TABLE = "partition_lag"
_TOLERATED_INTERVALS = 3
_LOOK_EVERY_S = 1.0
# What freezes this process or its disk may freeze the owner too: of a longer gap between two looks no more counts.
_LONGEST_GAP_S = 5.0

Sign: TypeAlias = Beat | datetime
"""A value that changes with each heartbeat: the beat, or without beats the time of the newest commit."""
Look: TypeAlias = Callable[[], Sign | None]


def wait_for_turn(config: Config, own: Heartbeat, stop: Event) -> None:
    """Return once the tables have no owner and `own` has claimed them; or when `stop` is set.

    A claim is a first beat that is read again a moment later: if two standbys claim at once, the one whose beat
    was replaced keeps waiting. Without beats there is no claim either, and the later of the two fences the
    other.
    """
    if not heartbeat.is_kept(config.tables.root):
        watch(_newest_commit(config), patience_s=_patience_with_commits(config), stop=stop)
        return
    look = _newest_beat(config)
    while not stop.is_set():
        watch(look, patience_s=PATIENCE_S, stop=stop)
        if not stop.is_set() and _has_claimed(own, stop):
            return


def watch(look: Look, *, patience_s: float, stop: Event, now_s: Callable[[], float] = time.monotonic) -> None:
    """Return when there is no heartbeat, or the same one for longer than `patience_s`; or when `stop` is set.

    Args:
        look: Returns the newest heartbeat, None without one; a StoreError proves neither.
        patience_s: Seconds.
        stop: Ends the watch.
        now_s: A clock that only goes forward.
    """
    seen: Sign | None = None
    silent_s, last_s = 0.0, now_s()
    while not stop.is_set():
        try:
            newest = look()
        except StoreError as error:
            log.warning("the owner's heartbeat cannot be read", extra={"error": str(error)})
            newest = seen
        else:
            if newest is None:
                return
            if seen is None:
                log.info("standing by: another driver owns the tables", extra={"sign_of_life": str(newest)})
        looked_s = now_s()
        silent_s = silent_s + min(looked_s - last_s, _LONGEST_GAP_S) if newest == seen else 0.0
        seen, last_s = newest, looked_s
        if silent_s > patience_s:
            log.warning(
                "no heartbeat from the owner of the tables: taking over",
                extra={"last": str(seen), "for_s": round(silent_s)},
            )
            return
        stop.wait(_LOOK_EVERY_S)


def _newest_beat(config: Config) -> Look:
    options = resolve(config.tables.storage_options)

    def look() -> Beat | None:
        beat = heartbeat.read(config.tables.root, options)
        return None if beat is None or beat.is_stopped else beat

    return look


def _has_claimed(own: Heartbeat, stop: Event) -> bool:
    own.claim(ownership.owner_name(clock.now_ms()))
    stop.wait(_LOOK_EVERY_S)
    return own.is_confirmed()


def _newest_commit(config: Config) -> Look:
    """The time of the newest commit of a table that every batch writes."""
    tables = Tables(config.tables.root, resolve(config.tables.storage_options))

    def look() -> datetime | None:
        try:
            return tables.written_at(_TABLE)
        except MissingTableError:
            return None

    return look


def _patience_with_commits(config: Config) -> float:
    # The first batches after a start may take as long as the start is given, and no batch ends without Kafka.
    return _TOLERATED_INTERVALS * config.trigger.interval_s + config.start.deadline_s
