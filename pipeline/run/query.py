"""The streaming query: built, watched, and stopped between two batches."""

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pyspark import SparkFiles
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pipeline.errors import PipelineError, StorageRefusedError, StorageUnavailableError, StoreError
from pipeline.kafka.positions import End
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch import steps
from pipeline.run.batch.asked import is_whole
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.opening import Outage
from pipeline.run.batch.steps import Done, Outcome
from pipeline.run.driver import Driver
from pipeline.run.health.monitor import BatchFigures
from pipeline.run.spark.executors import ExecutorWatch, kill_source
from pipeline.run.storage_wait import StorageWait
from pipeline.source.datasource import FORMAT, LagwiseSource
from pipeline.tables.storage import trouble_of
from pipeline.tables.store import absolute

log = logging.getLogger(__name__)

_POLL_S = 1
_SILENT_INTERVALS = 4
_LEAST_SILENT_S = 15.0
_FIRST_BATCH_S = 60.0
"""A query takes some seconds to start, and its first batch waits for the processes of Python."""
_COMMIT_S = 10
_COMMIT_POLL_S = 0.05
_SHOWN_S = 0.01
_LATE_SAID_EVERY_S = 600
_CALLED = "Py4JJavaError: An error occurred while calling"
"""Pattern of py4j's name for a JVM exception."""
_LOST = re.compile(r"most recent failure: (?:Lost task .*?\): )?(.+)")
"""Pattern of Spark's message about the last attempt of a task that failed its job."""
_TRACE = "Traceback (most recent call last):"
_FRAME = re.compile(r"^.* terminated with exception: |^Caused by: | SQLSTATE: \w+$")


RunBatch: TypeAlias = Callable[[Driver, int, DataFrame], Outcome]
"""Takes one batch through its steps: `steps.run`."""


class _StopRequestedError(Exception):
    """Raised by a batch that Spark started after the stop was asked for; it will run again next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(BatchFigures):
    """One finished batch."""

    is_complete: bool
    """Everything that was in the offsets topic when the job started has been read, or every group has answered."""
    is_overdue: bool
    """It is not, and the start-up deadline has passed."""
    records_left: int
    """Records beyond the limit of this batch, for the next batches, which begin at once."""
    has_read: bool
    """It came further in some log."""
    waited_s: float
    """Since the batch before it ended."""


class Runner:
    """Calls the steps for each batch of one query; the query's foreachBatch function."""

    def __init__(
        self,
        driver: Driver,
        *,
        stop: threading.Event,
        on_batch: Callable[[Report], None],
        on_outage: Callable[[], None],
        interval_s: float,
        run_batch: RunBatch = steps.run,
        storage: StorageWait,
    ) -> None:
        """Nothing runs before the query calls."""
        self.driver = driver
        self.storage = storage
        self.interval_s = interval_s
        self.run_batch = run_batch
        self.on_batch = on_batch
        self.on_outage = on_outage
        self.between_batches = threading.Lock()
        """Held while a batch runs; stopping the query waits for it."""
        self.stop = stop
        """A batch that begins when it is set gives up before it has done anything."""
        self.ended = threading.Event()
        """Ends only this query: another one follows."""
        self.failure: BaseException | None = None
        self.failed_at: str | None = None
        """Activity of the failed batch, if reported."""
        self.last_batch_at_s = time.monotonic()
        self.last_batch_id: int | None = None
        self._late_said_at_s = -math.inf

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Run one batch; its failure is kept for the main thread, as Spark only passes its text on."""
        with self.between_batches:
            try:
                # Spark writes into its checkpoint before and after the batch: it is not to meet a disk that is full.
                self.storage.until_usable()
                if not (self.stop.is_set() or self.ended.is_set()):
                    self._run(frame, batch_id)
            except BaseException as error:  # a panic of Rust is no Exception
                self.failed_at = self.driver.monitor.step_failed()
                self.failure = self._failure_of(error)
                raise self.failure from error
            finally:
                self.last_batch_at_s = time.monotonic()
            if self.last_batch_id != batch_id:
                raise _StopRequestedError

    def _failure_of(self, error: BaseException) -> BaseException:
        """The error for the main thread. If the tables could not be written, wait here until they can be."""
        if isinstance(error, StorageRefusedError) and not self.storage.has_been_written:
            # Waiting does not help tasks that never had the right: keys or rights are wrong.
            return StorageRefusedError(
                f"the store gives Spark's tasks fewer rights than the driver: {error}; give the executors the driver's "
                "rights to the tables, by keys in tables.storage_options or by a role of their hosts, and start the "
                "driver again"
            )
        why = trouble_of(error, has_been_written=True)
        if why is None:
            return error
        try:
            self.storage.until_usable(why)
        except StoreError as given_up:
            return given_up
        return StorageUnavailableError(why)

    def _run(self, frame: DataFrame, batch_id: int) -> None:
        begun = time.monotonic()
        waited_s = begun - self.last_batch_at_s
        outcome = self.run_batch(self.driver, batch_id, frame)
        self.last_batch_id = batch_id
        if isinstance(outcome, Done):
            self._finished(outcome, seconds=time.monotonic() - begun, waited_s=waited_s)
        elif isinstance(outcome, Outage):
            self.driver.monitor.kafka_failed(f"Kafka is unavailable: {outcome.reason}")
            self.storage.kafka_was_unavailable()
            self.on_outage()

    def _finished(self, done: Done, *, seconds: float, waited_s: float) -> None:
        batch, stamp, decided = done.batch, done.stamp, done.decisions
        is_read = not stamp.behind and not batch.is_replay
        is_unfinished = bool(stamp.behind) or batch.intake.left > 0
        is_overdue = is_unfinished and self.driver.progress.readiness.is_overdue(stamp.at_ms)
        report = Report(
            stamp=stamp,
            seconds=seconds,
            seconds_by_step=done.seconds_by_step,
            counts=batch.read.summary.counts,
            decisions=()
            if decided is None
            else tuple(zip(*(decided[name].to_pylist() for name in ("decision", "reason")), strict=True)),
            published=done.published,
            # A repeated batch asks nobody.
            unanswered=sum(isinstance(one, str) for one in batch.answers.values()) if batch.answers else None,
            offsets_left=_offsets_left(batch),
            is_settled=is_read or is_overdue,
            is_complete=is_read and not batch.intake.left and is_whole(batch),
            is_overdue=is_overdue,
            records_left=batch.intake.left,
            has_read=batch.has_read,
            waited_s=waited_s,
        )
        self.driver.monitor.batch_ended(report)
        _log(report)
        is_full = report.records_left > 0 and report.has_read
        if seconds > self.interval_s and not (is_full or batch.services.is_once):
            self._say_late(report)
        self.on_batch(report)

    def _say_late(self, report: Report) -> None:
        now_s = time.monotonic()
        if now_s - self._late_said_at_s < _LATE_SAID_EVERY_S:
            return
        self._late_said_at_s = now_s
        step, step_s = max(report.seconds_by_step.items(), key=lambda pair: pair[1])
        log.warning(
            "a batch took longer than trigger.interval_s, so figures are older than that",
            extra={
                "seconds": round(report.seconds, 1),
                "interval_s": self.interval_s,
                "slowest_step": step,
                "of_it_s": round(step_s, 1),
                "hint": "a single slow batch is harmless; if it persists, give the driver more cores, or raise "
                "trigger.interval_s",
            },
        )


def start(
    spark: SparkSession, runner: Runner, *, checkpoint: str, options: Mapping[str, str]
) -> StreamingQuery:
    """Start the query; the first batch runs at once, and the source schedules the others.

    Args:
        spark: Session.
        runner: Of the batches.
        checkpoint: Spark's folder for the query.
        options: Of the source.
    """
    _bring_shipped_code(spark)
    spark.dataSource.register(LagwiseSource)
    return (
        spark.readStream.format(FORMAT)
        .options(**options)
        .load()
        .writeStream.queryName("lagwise")
        .foreachBatch(runner)
        .option("checkpointLocation", _located(checkpoint))
        .trigger(processingTime="0 seconds")
        .start()
    )


def _bring_shipped_code(spark: SparkSession) -> None:
    """Put what `--py-files` has brought where the process of a streaming source looks for it.

    Spark (4.0 to 4.2, `PythonStreamingSourceRunner`) tells that process of a folder `streaming_job`, which only Spark
    Connect fills: without this a driver whose code was shipped as a zip cannot import it there.
    """
    root = Path(SparkFiles.getRootDirectory())
    looked_at = root / "streaming_job"
    for name in spark.sparkContext._python_includes or ():  # noqa: SLF001 - pyspark does not tell it otherwise
        looked_at.mkdir(exist_ok=True)
        if not (looked_at / name).exists():
            (looked_at / name).symlink_to(root / name)


def _located(checkpoint: str) -> str:
    """A folder of this host by a name that is one for Hadoop too, whatever its default file system is."""
    place = absolute(checkpoint)
    # Hadoop takes the rest as it stands: nothing is to be escaped.
    return place if "://" in place else f"file://{place}"


def set_checkpoint_aside(spark: SparkSession, checkpoint: str, *, at_ms: int) -> None:
    """Rename a checkpoint that Spark cannot continue from, so that the next start creates a new one.

    Nothing is lost: it only numbers batches, and the tables hold what was read.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Hadoop's file systems have no other door in PySpark
    names = (checkpoint, f"{checkpoint}.{at_ms}")
    path, aside = (jvm.org.apache.hadoop.fs.Path(_located(name)) for name in names)
    system = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001 - as above
    if system.exists(path) and system.rename(path, aside):
        log.warning(
            "Spark cannot continue from its checkpoint; lagwise starts a new one, and the tables are unaffected",
            extra={"checkpoint": checkpoint, "set_aside_as": f"{checkpoint}.{at_ms}"},
        )


def watch(
    query: StreamingQuery,
    runner: Runner,
    executors: ExecutorWatch,
    *,
    interval_s: int,
    hung_s: float = math.inf,
    is_outdated: Callable[[], bool] = lambda: False,
) -> None:
    """Return when the query was stopped between two batches: `runner.stop` was set, or another query must follow.

    Args:
        query: Begun.
        runner: Of its batches.
        executors: Checked from time to time.
        interval_s: Time from one batch to the next.
        hung_s: Time after which the process that chooses batches has ended itself; one that hangs is killed.
        is_outdated: Returns whether another query must follow.

    Raises:
        PipelineError: A batch raised it.
        StreamingQueryException: The query ended for another reason.
    """
    warned_at_s = killed_at_s = 0.0
    while not runner.stop.is_set():
        if _has_ended(query, runner):
            return
        if is_outdated():
            runner.ended.set()
            break
        executors.look()
        now_s = time.monotonic()
        silent_s = now_s - max(runner.last_batch_at_s, warned_at_s)
        least_s = _FIRST_BATCH_S if runner.last_batch_id is None else _LEAST_SILENT_S
        is_late = silent_s > max(_SILENT_INTERVALS * interval_s, least_s)
        if is_late and not runner.between_batches.locked():
            warned_at_s = now_s
            log.warning(
                "no batch has started, though one is due: is the machine overloaded?",
                extra={"for_s": round(now_s - runner.last_batch_at_s)},
            )
        if now_s - max(runner.last_batch_at_s, killed_at_s) > hung_s and not runner.between_batches.locked():
            killed_at_s = now_s
            kill_source(runner.driver.spark, silent_s=now_s - runner.last_batch_at_s)
    _let_commit(query, runner)
    # The batch at hand ends first. The lock is free again when Spark stops: a batch that begins now has to come
    # in to give up, or the stop would wait for it in vain.
    while not runner.between_batches.acquire(timeout=_POLL_S):
        if executors.is_starved():
            executors.cancel()
    runner.between_batches.release()
    query.stop()


def _let_commit(query: StreamingQuery, runner: Runner) -> None:
    """Give Spark the moment it takes to write a finished batch into the checkpoint, or it would run again."""
    deadline_s = time.monotonic() + _COMMIT_S
    while query.isActive and time.monotonic() < deadline_s:
        progress = query.lastProgress
        if runner.last_batch_id is None or (progress and progress.batchId >= runner.last_batch_id):
            return
        threading.Event().wait(_COMMIT_POLL_S)


def _has_ended(query: StreamingQuery, runner: Runner) -> bool:
    try:
        return bool(query.awaitTermination(_POLL_S))
    except StreamingQueryException:
        if runner.stop.is_set() and runner.failure is None:
            return True
        if isinstance(runner.failure, PipelineError):
            raise runner.failure from None
        raise


def cause_of(error: StreamingQueryException) -> str:
    """Return the line with the cause from a failed query's message, which also holds plans and traces."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [
        line
        for line in lines
        if _CALLED not in line and ("org.apache.kafka" in line or line.endswith("Error") or "Error: " in line)
    ]
    # Of a task that has raised an error of Python this line holds no more than the beginning of the trace.
    lost = [found[1] for line in lines if (found := _LOST.search(line)) and not found[1].endswith(_TRACE)]
    return _FRAME.sub("", (lost[-1:] or causes[-1:] or lines)[0])


def _left(report: Report) -> dict[str, int]:
    """What there is to read, and about how long that takes when it goes on as in this batch."""
    read = sum(report.counts.values())
    if not report.records_left or not read:
        return {}
    return {
        "records_left": report.records_left,
        "read_in_about_s": round(report.records_left * report.seconds / read),
    }


def _log(report: Report) -> None:
    log.info(
        "batch",
        extra={
            "batch_id": report.stamp.batch_id,
            "seconds": round(report.seconds, 2),
            "published": report.published,
            "counts": {name: count for name, count in report.counts.items() if count},
            "steps": {name: round(s, 2) for name, s in report.seconds_by_step.items() if s >= _SHOWN_S},
            **_left(report),
            **({"provisional": report.stamp.reason} if report.stamp.reason else {}),
        },
    )
    if report.counts.get("bad"):
        log.warning(
            "records could not be decoded; see table quarantine", extra={"records": report.counts["bad"]}
        )


def _offsets_left(batch: Settled) -> int | None:
    """Records of the offsets topic that are not read; None unless every leader has said where its log ends."""
    positions, left = batch.stamp.positions or {}, 0
    answers = {key: one for key, one in batch.answers.items() if key[0] == OFFSETS_TOPIC}
    for key, answer in answers.items():
        if not isinstance(answer, End) or key not in positions:
            return None
        left += max(0, answer.high - positions[key].offset)
    return left if answers else None
