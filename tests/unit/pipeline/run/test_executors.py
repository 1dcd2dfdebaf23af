"""A job that gets no executors says so within a minute, and hears that it is to stop; a source that hangs is killed."""

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.run.health.monitor import Monitor
from pipeline.run.query import watch
from pipeline.run.spark import executors as module
from pipeline.run.spark.executors import ExecutorWatch, kill_source


class Cluster:
    """Stands for a session on a cluster, as far as it is asked."""

    def __init__(self, master: str = "spark://127.0.0.1:7077") -> None:
        self.executors, self.jobs = 0, [1]
        self.master = master
        self.cancelled = threading.Event()
        self.cancelAllJobs = self.cancelled.set
        self._jsc = SimpleNamespace(sc=lambda: self)
        self.sparkContext = self

    def statusTracker(self) -> Any:  # noqa: N802 - as in Spark
        return SimpleNamespace(getActiveJobsIds=lambda: self.jobs)

    def getExecutorMemoryStatus(self) -> Any:  # noqa: N802
        return SimpleNamespace(size=lambda: 1 + self.executors)

    def getConf(self) -> Any:  # noqa: N802
        given = {"spark.executor.memory": "8g", "spark.executor.cores": "2"}
        return SimpleNamespace(getAll=given.items, get=given.get)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "workers_of", lambda _master, page_port: f"host-1: 4096 of 4096 MiB free, by {page_port}"
    )


def told(cluster: Cluster, caplog: pytest.LogCaptureFixture, *times_s: float) -> tuple[list[Any], Monitor]:
    session: Any = cluster
    clock, monitor = Clock(), Monitor()
    one = ExecutorWatch(session, monitor, clock)
    with caplog.at_level(logging.WARNING):
        for clock.now_s in times_s:
            one.look()
    return [record.__dict__ for record in caplog.records], monitor


def test_job_without_executors_says_what_it_asks_for_and_what_the_workers_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said, monitor = told(Cluster(), caplog, 0, 29, 31, 60)

    (line,) = said
    assert (line["asked_of_each"], line["workers"]) == (
        "8g of memory, 2 cores",
        "host-1: 4096 of 4096 MiB free, by 8080",
    )
    assert any("no executors for 31 s" in reason for reason in monitor.health().reasons)


@pytest.mark.parametrize("case", ["local", "idle", "served"])
def test_nobody_waits_for_executors_who_needs_none_or_has_some(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster("local[*]" if case == "local" else "spark://127.0.0.1:7077")
    cluster.jobs = [] if case == "idle" else [1]
    cluster.executors = 1 if case == "served" else 0

    assert told(cluster, caplog, 0, 31, 61)[0] == []


def test_job_that_has_just_begun_is_given_time(caplog: pytest.LogCaptureFixture) -> None:
    assert told(Cluster(), caplog, 0, 29)[0] == []


def test_stop_ends_a_batch_that_no_executor_runs() -> None:
    cluster = Cluster()
    session: Any = cluster
    lock, stop = threading.Lock(), threading.Event()
    lock.acquire()
    stop.set()
    threading.Thread(target=lambda: (cluster.cancelled.wait(30), lock.release())).start()
    stopped: list[bool] = []
    query: Any = SimpleNamespace(isActive=False, stop=lambda: stopped.append(True))
    runner: Any = SimpleNamespace(stop=stop, between_batches=lock, last_batch_at_s=0)

    watch(query, runner, ExecutorWatch(session, Monitor()), interval_s=1)

    assert cluster.cancelled.is_set()
    assert stopped == [True]


def test_process_of_the_source_alone_is_killed_of_all_below_the_jvm(caplog: pytest.LogCaptureFixture) -> None:
    killed = []

    def process(command: str) -> Any:
        return SimpleNamespace(
            info=lambda: SimpleNamespace(commandLine=lambda: SimpleNamespace(orElse=lambda _: command)),
            pid=lambda: 7,
            destroyForcibly=lambda: killed.append(command) is None,
        )

    commands = [
        "python -m pyspark.daemon",
        "python -m pyspark.sql.streaming.python_streaming_source_runner",
        "",
    ]
    handle = SimpleNamespace(descendants=lambda: SimpleNamespace(toArray=lambda: [*map(process, commands)]))
    lang = SimpleNamespace(ProcessHandle=SimpleNamespace(current=lambda: handle))
    session: Any = SimpleNamespace(_jvm=SimpleNamespace(java=SimpleNamespace(lang=lang)))

    kill_source(session, silent_s=181.4)

    assert killed == commands[1:2]
    assert "hangs and is killed" in caplog.text
