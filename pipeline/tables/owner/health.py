"""Health of the stream, from what its driver has written: its heartbeats, and the stamp of its newest batch.

Pure: callers pass what they have seen, and the time. Liveness and readiness differ: a driver that waits for Kafka is
alive, and restarting it would not help; waiting for a dead driver does not help either.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pipeline.tables.owner.driver_report import DriverReport
from pipeline.tables.owner.heartbeat import Beat

State: TypeAlias = Literal["ok", "warning", "critical", "unknown"]

LATE_TRIGGERS = 3
_DEAD_TRIGGERS = 10
_LEAST_S = 15.0
"""Three beats; with shorter triggers, a machine that is busy for a moment would count as dead."""
_AHEAD = "ahead of this machine's clock"
_COMPARE = "compare the clocks of this machine and of the driver's host"
_NOT_YET_OWNER = (
    "one that has just started owns them in some seconds, or waits for Kafka: see its log; otherwise start one with "
    "`lagwise run`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Observations of a stream."""

    has_beats: bool
    """True if drivers on such tables write heartbeats; on some object stores they do not."""
    beat: Beat | None
    batch_at_ms: int | None
    """Clock of the newest batch in the tables; None before the first."""
    reason: str | None = None
    """Why some rows are provisional, by that batch."""
    held: str | None = None
    """Why no plans are made, by that batch."""
    is_clock_behind: bool = False
    """True if an operator must set a clock first."""
    full: str | None = None
    """Why the disk of the tables takes no more batch, by who looks."""
    remarks: tuple[str, ...] = ()
    """Further remarks of that batch for the operator."""
    interval_s: float
    """Interval of the trigger, if the driver does not report it."""

    @property
    def trigger_s(self) -> float:
        """Return the trigger interval, as the driver reports it if it does."""
        report = self.beat.report if self.beat else None
        return self.interval_s if report is None else report.interval_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The verdict."""

    is_live: bool | None
    """The driver works, or waits for what is not in its hands; None if the clocks do not let anyone tell."""
    is_ready: bool
    """The tables are up to date."""
    reasons: tuple[str, ...]
    """Reasons why it is not ok, the most severe first."""
    is_blocked: bool = False
    """True if it is alive but needs help to continue: the tables cannot be written, or the clock is behind."""

    @property
    def state(self) -> State:
        """In one word."""
        if self.is_live is False or self.is_blocked:
            return "critical"
        if self.is_live is None:
            return "unknown"
        return "ok" if self.is_ready and not self.reasons else "warning"

    def to_json(self) -> str:
        """One line, for who asks by HTTP."""
        values = {"state": self.state, "live": self.is_live, "ready": self.is_ready, "reasons": self.reasons}
        return f"{json.dumps(values)}\n"


def judge(sight: Sight, *, now_ms: int) -> Health:
    """Say whether the stream lives and whether its tables are up to date."""
    blocked = tuple(filter(None, [_storage_error(sight)]))
    doubt = _why_unknown(sight, now_ms)
    if doubt is not None:
        return Health(is_live=None, is_ready=False, reasons=(*blocked, doubt), is_blocked=bool(blocked))
    dead = _why_dead(sight, now_ms) if sight.has_beats else _why_dead_without_beats(sight, now_ms)
    if dead is not None:
        # On a disk that is full a driver that lives cannot give a sign of it.
        return Health(is_live=False, is_ready=False, reasons=(*blocked, dead))
    unready = (*blocked, *_why_unready(sight, now_ms))
    return Health(
        is_live=True,
        is_ready=not unready,
        reasons=(*unready, *_remarks(sight)),
        is_blocked=bool(blocked) or sight.is_clock_behind,
    )


def _storage_error(sight: Sight) -> str | None:
    report = sight.beat.report if sight.beat and not sight.beat.is_stopped else None
    return (report.storage_error if report else None) or sight.full


def _why_unknown(sight: Sight, now_ms: int) -> str | None:
    """The last sign of life is far ahead of this clock, so its age is unknown: its driver may beat, or be dead."""
    if not sight.has_beats:
        what, at_ms, limit_s = "newest batch", sight.batch_at_ms, _dead_after_s(sight.interval_s)
    elif sight.beat is not None and not sight.beat.is_stopped:
        what, at_ms = f"heartbeat of driver {sight.beat.owner}", sight.beat.at_ms
        limit_s = late_after_s(sight.trigger_s)
    else:
        return None
    if at_ms is None or _age_s(at_ms, now_ms) >= -limit_s:
        return None
    ahead_s = -_age_s(at_ms, now_ms)
    return f"the {what} is {ahead_s:.0f} s {_AHEAD}, so whether the driver lives is unknown; {_COMPARE}"


def late_after_s(interval_s: float) -> float:
    """Return the maximum age of what each trigger writes: three triggers, and at least 15 s."""
    return max(LATE_TRIGGERS * interval_s, _LEAST_S)


def _why_dead(sight: Sight, now_ms: int) -> str | None:
    beat = sight.beat
    if beat is None:
        return f"no driver owns the tables: there is no _owner.json in their folder; {_NOT_YET_OWNER}"
    age_s, limit_s = _age_s(beat.at_ms, now_ms), late_after_s(sight.trigger_s)
    if beat.is_stopped:
        return (
            f"driver {beat.owner} was stopped {max(age_s, 0):.0f} s ago, and no other owns the tables yet; "
            f"{_NOT_YET_OWNER}"
        )
    if age_s > limit_s:
        return (
            f"driver {beat.owner} has sent no heartbeat for {age_s:.0f} s (limit {limit_s:.0f} s): it, or its "
            "machine, is dead or suspended; look at its log, and start it again"
        )
    report = beat.report
    if report is None:
        return None
    still_s = abs(_age_s(report.progress_at_ms, now_ms))
    if still_s > report.stuck_after_s:
        return (
            f"driver {beat.owner} is stuck {_where(report)}: no step has ended for {still_s:.0f} s "
            f"(limit {report.stuck_after_s:.0f} s); look at its log, and start it again"
        )
    return None


def _where(report: DriverReport) -> str:
    if report.doing:
        return f"in {report.doing}"
    return f"after {report.step}" if report.step else f"while it is {report.stage}"


def _why_dead_without_beats(sight: Sight, now_ms: int) -> str | None:
    if sight.batch_at_ms is None:
        return "no batch has been written yet; start a driver with `lagwise run`"
    age_s, limit_s = _age_s(sight.batch_at_ms, now_ms), _dead_after_s(sight.interval_s)
    if age_s <= limit_s:
        return None
    return (
        f"no batch has been written for {age_s:.0f} s (limit {limit_s:.0f} s): the driver is dead, or Kafka is "
        "unavailable; look at its log (an object store has no heartbeat that would tell)"
    )


def _dead_after_s(interval_s: float) -> float:
    return max(_DEAD_TRIGGERS * interval_s, late_after_s(interval_s))


def _why_unready(sight: Sight, now_ms: int) -> Iterator[str]:
    report = sight.beat.report if sight.beat else None
    if report is not None and report.kafka_error is not None:
        yield report.kafka_error
    if report is not None and report.spark_error is not None:
        yield report.spark_error
    if report is not None and report.stage != "running":
        yield f"the driver is {report.stage}"
        return
    if sight.batch_at_ms is None:
        yield "no batch has been written yet"
        return
    age_s, limit_s = _age_s(sight.batch_at_ms, now_ms), late_after_s(sight.trigger_s)
    if age_s > limit_s:
        yield f"the newest batch is {age_s:.0f} s old (limit {limit_s:.0f} s)"
    if age_s < -limit_s:
        yield f"the newest batch is {-age_s:.0f} s {_AHEAD}, so its age is unknown; {_COMPARE}"
    if report is not None and not report.is_settled:
        yield "the offsets topic is being read for the first time since the start"


def _remarks(sight: Sight) -> Iterator[str]:
    if sight.reason is not None:
        yield f"groups are provisional: {sight.reason}"
    if sight.held is not None:
        yield f"no plan is made: {sight.held}"
    yield from sight.remarks


def _age_s(at_ms: int, now_ms: int) -> float:
    return (now_ms - at_ms) / 1000
