"""Conditions that Spark would wait for forever: missing executors, and a hanging process of its source."""

import json
import logging
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from pyspark.sql import SparkSession

from pipeline.config.places import is_local
from pipeline.run.health.monitor import Monitor

log = logging.getLogger(__name__)

PATIENCE_S = 30.0
_SOURCE = "python_streaming_source_runner"
_SAID_EVERY_S = 600.0
_PAGE_PORT, _DEFAULT_PAGE_PORT = "spark.master.ui.port", "8080"
_ALIVE = "ALIVE"
_TIMEOUT_S = 2.0


class ExecutorWatch:
    """Checks from time to time whether waiting tasks have executors."""

    def __init__(
        self, spark: SparkSession, monitor: Monitor, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is asked yet.

        Args:
            spark: Session.
            monitor: Receives the findings.
            clock_s: A clock that only goes forward.
        """
        self._spark = spark
        self._monitor = monitor
        self._clock_s = clock_s
        self._since_s: float | None = None
        self._said_at_s: float | None = None

    def look(self) -> None:
        """Say so when a job has had no executor for half a minute."""
        now_s = self._clock_s()
        if not self.is_starved():
            self._since_s = None
            return
        if self._since_s is None:
            self._since_s = now_s
        is_due = self._said_at_s is None or now_s - self._said_at_s >= _SAID_EVERY_S
        if now_s - self._since_s >= PATIENCE_S and is_due:
            self._said_at_s = now_s
            self._say(now_s - self._since_s)

    def is_starved(self) -> bool:
        """Return whether a job runs on a cluster without executors."""
        context = self._spark.sparkContext
        if is_local(context.master or "local") or not context.statusTracker().getActiveJobsIds():
            return False
        # The driver is one of them.
        return int(_jvm_context(context).getExecutorMemoryStatus().size()) <= 1

    def cancel(self) -> None:
        """Cancel jobs without executors: the batch fails, and runs again after the next start."""
        log.warning("the current batch is abandoned: it has no executors, and the driver was asked to stop")
        self._spark.sparkContext.cancelAllJobs()

    def _say(self, for_s: float) -> None:
        asked, context = asked_of(self._spark), self._spark.sparkContext
        self._monitor.spark_failed(f"Spark has had no executors for {for_s:.0f} s: it asks for {asked} each")
        log.warning(
            "the batch waits because Spark gives the job no executors",
            extra={
                "for_s": round(for_s),
                "asked_of_each": asked,
                "workers": workers_of(
                    context.master or "", page_port=context.getConf().get(_PAGE_PORT) or _DEFAULT_PAGE_PORT
                ),
                "hint": "a worker needs enough free memory and cores for one executor: lower --executor-memory or "
                "--executor-cores, free or add workers, or check whether another application holds them",
            },
        )


def kill_source(spark: SparkSession, *, silent_s: float) -> None:
    """Kill Spark's process of the streaming source, which runs next to the driver; the query fails by that.

    Args:
        spark: Session.
        silent_s: How long no batch has begun.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no other word about that process
    found = jvm.java.lang.ProcessHandle.current().descendants().toArray()
    for process in found:
        if _SOURCE in str(process.info().commandLine().orElse("")) and process.destroyForcibly():
            log.warning(
                "the process that chooses batches hangs and is killed; the query restarts",
                extra={"pid": process.pid(), "silent_s": round(silent_s)},
            )


def asked_of(spark: SparkSession) -> str:
    """Return the resources that Spark requests for each executor."""
    given = dict(spark.sparkContext.getConf().getAll())
    memory, cores = given.get("spark.executor.memory", "1g"), given.get("spark.executor.cores", "all")
    overhead = given.get("spark.executor.memoryOverhead")
    return f"{memory} of memory{f' and {overhead} of overhead' if overhead else ''}, {cores} cores"


def workers_of(master: str, *, page_port: str) -> str:
    """Describe the free resources of a standalone cluster from its master's page; otherwise name where to look.

    Args:
        master: `spark.master`.
        page_port: `spark.master.ui.port`, which masters do not report.
    """
    if not master.startswith("spark://"):
        return f"see the cluster manager's page ({master})"
    pages = [_page_of(one, page_port) for one in master.removeprefix("spark://").split(",")]
    # Of several masters one is at work; the others know no workers.
    leading = next((found for page in pages if (found := _told_by(page)).get("status") == _ALIVE), None)
    if leading is None:
        return (
            f"unknown, no active master answers on {' or '.join(pages)}: see its page, and name its port in "
            f"{_PAGE_PORT}"
        )
    alive = [one for one in leading["workers"] if one["state"] == _ALIVE]
    if not alive:
        return "none is alive"
    return "; ".join(
        f"{one['host']}: {one['memoryfree']} of {one['memory']} MiB and {one['coresfree']} of {one['cores']} cores "
        "free"
        for one in alive
    )


def _page_of(address: str, port: str) -> str:
    host = urlsplit(f"spark://{address}").hostname or ""
    return f"http://[{host}]:{port}/json/" if ":" in host else f"http://{host}:{port}/json/"


def _told_by(page: str) -> dict[str, Any]:
    """What the master says of itself; nothing when that is no master's page."""
    try:
        with urlopen(page, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - of a scheme that is written here
            found = json.load(answer)
    except (OSError, ValueError, HTTPException):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("workers"), list) else {}


def _jvm_context(context: Any) -> Any:
    return context._jsc.sc()  # noqa: SLF001 - pyspark does not tell it otherwise
