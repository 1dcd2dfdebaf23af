"""Spark's progress of the query: rows from the source, and the duration of its own phases around the steps."""

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from pipeline.run.health.monitor import Monitor, SparkFigures


class SparkListener(StreamingQueryListener):
    """Tells the monitor; batches, their steps and failures it hears of from the driver."""

    def __init__(self, monitor: Monitor) -> None:
        """Nothing is heard before the session has it."""
        self._monitor = monitor

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Record the figures of a trigger; ignore one without a batch."""
        progress = event.progress
        phases = progress.durationMs
        if "addBatch" in phases:
            seconds = {phase: ms / 1000 for phase, ms in phases.items()}
            self._monitor.spark_progressed(SparkFigures(rows=progress.numInputRows, seconds_by_phase=seconds))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing: the driver sees the end, with its cause."""
