"""Spark's JVM is stopped for longer than its own heartbeats may take, and goes on: it works, and its log is no flood."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

_STOPPED_S = 7
_CODE = """
import sys
from pipeline.local.jars import resolve_for_spark
from pipeline.run.spark.session import PACKAGES, build_session

# Spark's own limits are two minutes.
spark = build_session(
    {
        "spark.master": "local[2,4]",
        "spark.driver.memory": "1g",
        "spark.executor.heartbeatInterval": "1s",
        "spark.network.timeout": "4s",
        "spark.network.timeoutInterval": "500ms",
        "spark.storage.blockManagerHeartbeatTimeoutMs": "4000",
    },
    jars=resolve_for_spark(PACKAGES),
)
print(spark.sparkContext._gateway.proc.pid, flush=True)
for _ in sys.stdin:
    print(spark.range(10).count(), flush=True)
"""
pytestmark = pytest.mark.timeout(300)


def test_spark_that_was_stopped_says_what_it_ignores_in_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def traces() -> list[str]:
        return [line for line in log.read_text().splitlines() if "rpc.netty.Inbox" in line]

    command = [sys.executable, "-c", _CODE]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        java = int(process.stdout.readline())

        def counted() -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        try:
            assert counted() == "10"
            stopped = 0
            # Which of its timers is first when it goes on is chance.
            while not traces() and stopped < 5:
                os.kill(java, signal.SIGSTOP)
                time.sleep(_STOPPED_S)  # what it misses is time itself
                os.kill(java, signal.SIGCONT)
                stopped += 1
                assert counted() == "10"
                with suppress(AssertionError):
                    wait_until(traces, what="what Spark ignores", within_s=5)
            assert counted() == "10"
        finally:
            os.kill(java, signal.SIGCONT)
            process.kill()
            os.kill(java, signal.SIGKILL)
    (line,) = traces()
    assert re.fullmatch(
        r"\S+Z ERROR +org\.apache\.spark\.rpc\.netty\.Inbox Ignoring error \(more of these within a minute are left out\): "
        r"org\.apache\.spark\.SparkException: Exception thrown in awaitResult: *",
        line,
    ), line
    assert "\tat " not in log.read_text()
