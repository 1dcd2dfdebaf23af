"""Spark and the job of the demo: started together with the broker, and ended with their JVM."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired

from pyspark.sql import SparkSession

from pipeline.config.model import Config
from pipeline.operate.background import in_background
from pipeline.run.job import Job
from pipeline.run.query import Report
from pipeline.run.spark.session import build_session

_STOPPED_WITHIN_S = 30.0
_JVM_GONE_WITHIN_S = 5.0


class Engine:
    """A Spark session, and a job in it as soon as the broker runs."""

    def __init__(self, settings: Mapping[str, str], *, jars: tuple[Path, ...]) -> None:
        """Start Spark; `session` is done when it runs."""
        self.session: Future[SparkSession] = in_background(lambda: build_session(settings, jars=jars))
        self._job: Job | None = None
        self._running: Future[None] | None = None

    def run(self, config: Config, *, on_batch: Callable[[Report], None]) -> None:
        """Run the job in a thread, since pyspark sets a signal handler of its own in the main one."""
        self._job = Job(config, on_batch=on_batch)
        self._running = in_background(self._job.run)

    def check(self) -> None:
        """Raise the error of the job if it has ended.

        Raises:
            PipelineError: It failed; the message is the line that says why.
        """
        if self._running and self._running.done():
            self._running.result()

    def stop(self) -> None:
        """Stop the stream after the current batch."""
        if self._job and self._running:
            self._job.stop.set()
            wait([self._running], timeout=_STOPPED_WITHIN_S)

    def close(self) -> None:
        """Stop Spark, even if it is still starting, and return when its JVM has ended."""
        wait([self.session], timeout=_STOPPED_WITHIN_S)
        if self.session.done() and not self.session.exception():
            _end(self.session.result())


def _end(session: SparkSession) -> None:
    gateway = session.sparkContext._gateway  # noqa: SLF001 - pyspark has no public way to end its JVM
    # After a signal to the whole process group the JVM is gone, for which py4j has many types of errors.
    with suppress(Exception):
        session.stop()
    if gateway is None:
        return
    gateway.shutdown()
    java = getattr(gateway, "proc", None)
    if java is not None:
        java.stdin.close()
        with suppress(TimeoutExpired):
            java.wait(_JVM_GONE_WITHIN_S)
        java.kill()
        java.wait()
