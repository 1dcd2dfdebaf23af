"""The monitor: the parts of the driver report to it, and other threads ask it for the driver's health."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.clock import now_ms
from pipeline.planning.rows.causes import guard_of
from pipeline.tables.owner.driver_report import DriverReport, Stage
from pipeline.tables.owner.health import Health, Sight, judge
from pipeline.tables.owner.heartbeat import Beat
from pipeline.tables.stamp import Stamp

BATCH_BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

_STUCK_TRIGGERS = 10
_LEAST_STUCK_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    """Figures of one finished batch."""

    stamp: Stamp
    seconds: float
    seconds_by_step: Mapping[str, float]
    counts: Mapping[str, int]
    """Records by kind."""
    decisions: Iterable[tuple[str, str | None]] = ()
    """Decision about each group, with its reason."""
    published: int
    unanswered: int | None
    """Partitions whose leader gave no answer; None if no leader was asked."""
    offsets_left: int | None
    """Unread records of the offsets topic; None if a leader did not answer."""
    is_settled: bool
    """See `DriverReport`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFigures:
    """Spark's figures of the newest batch."""

    rows: int
    """That the source gave."""
    seconds_by_phase: Mapping[str, float]
    """By Spark's name: `latestOffset` chooses, `addBatch` runs the steps, `walCommit` and `commitOffsets` write the
    checkpoint, `triggerExecution` is the whole."""


@dataclass(slots=True, kw_only=True)
class Totals:
    """Totals since the start."""

    batches: Counter[float] = field(default_factory=Counter)
    """Numbers of batches by the bucket of their duration."""
    batch_s: float = 0.0
    records: Counter[str] = field(default_factory=Counter)
    """Numbers of records by kind."""
    decisions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Numbers of decisions, by decision and guard; the guard is empty if there is none."""
    published: int = 0


class Monitor:
    """Present state of the driver. Any thread may call any method."""

    def __init__(self, *, interval_s: float = 30.0, deadline_s: float = 600.0) -> None:
        """Nothing has happened yet.

        Args:
            interval_s: Of the trigger.
            deadline_s: Time limit of a start.
        """
        self._lock = threading.RLock()
        stuck_after_s = max(_STUCK_TRIGGERS * interval_s, _LEAST_STUCK_S)
        self._running_stuck_s = stuck_after_s
        self._report = DriverReport(
            stage="starting",
            interval_s=interval_s,
            stuck_after_s=max(stuck_after_s, deadline_s),
            progress_at_ms=now_ms(),
        )
        self.cluster: str | None = None
        self.owner: tuple[str, int] | None = None
        """Name and term, once it owns the tables."""
        self.last: BatchFigures | None = None
        self.spark: SparkFigures | None = None
        self.totals = Totals()

    @property
    def lock(self) -> threading.RLock:
        """Return the lock for reading several consistent figures."""
        return self._lock

    def at(self, stage: Stage) -> None:
        """The driver starts, or waits for its turn."""
        self._update(stage=stage, step=None, doing=None)

    def owns(self, cluster: str, owner: str, term: int) -> None:
        """The driver has taken the tables over."""
        with self._lock:
            self.cluster, self.owner = cluster, (owner, term)
            self._update()

    def step_ended(self, step: str) -> None:
        """A step of a batch has ended."""
        self._update(step=step, doing=None)

    def does(self, doing: str) -> None:
        """A step begins with this part of it."""
        self._update(doing=doing)

    def step_failed(self) -> str | None:
        """Return the activity of the failed step, if reported, and go idle until a batch begins again."""
        with self._lock:
            doing = self._report.doing
            self._update(doing=None)
        return doing

    def kafka_failed(self, error: str) -> None:
        """The brokers cannot be asked now, for this reason; the driver tries again."""
        self._update(kafka_error=error)

    def spark_failed(self, error: str) -> None:
        """Spark runs no tasks now, for this reason."""
        self._tell(spark_error=error)

    def storage_answered(self) -> None:
        """The storage of the tables has answered: a step that waits for it again is slow, and not stuck."""
        self._update()

    def storage_failed(self, error: str) -> None:
        """The tables cannot be written now, for this reason; the driver tries again."""
        self._update(storage_error=error)

    def storage_untried(self) -> None:
        """Nothing has been written since the last failure, so it no longer says anything about now."""
        self._update(storage_error=None)

    def spark_progressed(self, figures: SparkFigures) -> None:
        """Spark has ended a batch."""
        with self._lock:
            self.spark = figures

    def batch_ended(self, figures: BatchFigures) -> None:
        """A batch is stored and published."""
        with self._lock:
            self.last, totals = figures, self.totals
            totals.batches[_bucket(figures.seconds)] += 1
            totals.batch_s += figures.seconds
            totals.records.update(figures.counts)
            totals.decisions.update(
                (decision, guard_of(reason) or "") for decision, reason in figures.decisions
            )
            totals.published += figures.published
            self._report = replace(
                self._report,
                stage="running",
                stuck_after_s=self._running_stuck_s,
                progress_at_ms=now_ms(),
                batch_s=figures.seconds,
                kafka_error=None,
                storage_error=None,
                spark_error=None,
                is_settled=self._report.is_settled or figures.is_settled,
            )

    def report(self) -> DriverReport:
        """Return the report for the next heartbeat."""
        with self._lock:
            if self._report.stage == "standing by":
                # Waiting is what it has to do.
                self._update()
            return self._report

    def health(self) -> Health:
        """Return the present health, as this process knows it."""
        with self._lock:
            at_ms, report, last = now_ms(), self.report(), self.last
            owner, term = self.owner or ("of this process", 0)
            sight = Sight(
                has_beats=True,
                beat=Beat(owner=owner, term=term, at_ms=at_ms, report=report),
                batch_at_ms=last.stamp.at_ms if last else None,
                reason=last.stamp.reason if last else None,
                held=last.stamp.held if last else None,
                is_clock_behind=last is not None and last.stamp.is_clock_behind,
                remarks=last.stamp.remarks if last else (),
                interval_s=report.interval_s,
            )
        return judge(sight, now_ms=at_ms)

    def _update(self, **changes: Any) -> None:
        self._tell(progress_at_ms=now_ms(), **changes)

    def _tell(self, **changes: Any) -> None:
        with self._lock:
            self._report = replace(self._report, **changes)


def _bucket(seconds: float) -> float:
    at = bisect_left(BATCH_BUCKETS_S, seconds)
    return BATCH_BUCKETS_S[at] if at < len(BATCH_BUCKETS_S) else float("inf")
