"""Log offsets are asked for by a process that may die without harm, and that never outlives the one that asks."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.kafka.sources.log_offsets import apart
from pipeline.kafka.sources.log_offsets.apart import Asker
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share
from tests.support.waiting import wait_until

SETTINGS = LogOffsetsSettings(
    properties={"bootstrap.servers": "127.0.0.1:1", "log_level": "0"},
    topics_include=(".*",),
    topics_exclude=(),
    isolation="read_uncommitted",
    request_timeout_s=0.2,
    splits=1,
)
NOTHING = Share(carries_listing=True)
SHARE = Share(topics=(("t", (0, 1)), ("u", (0,))), carries_listing=True)


@pytest.fixture
def asker() -> Iterator[Asker]:
    asker = Asker()
    yield asker
    asker.close()


def child(asker: Asker) -> int:
    assert asker._child is not None
    return asker._child.process.pid


def test_one_process_answers_all_questions(asker: Asker) -> None:
    first = asker.ask(SETTINGS, NOTHING).to_pylist()
    pid = child(asker)
    again = asker.ask(SETTINGS, NOTHING).to_pylist()

    assert [(row["topic"], row["error"]) for row in (*first, *again)] == [(None, None)] * 2
    assert child(asker) == pid != os.getpid()


def test_brokers_that_do_not_answer_are_told_as_without_the_process(asker: Asker) -> None:
    rows = asker.ask(SETTINGS, SHARE).to_pylist()

    assert [(row["topic"], row["partition"]) for row in rows] == [(None, None), ("t", 0), ("t", 1), ("u", 0)]
    assert all("leaders are not known" in row["error"] for row in rows[1:])


def test_process_that_dies_leaves_everything_unanswered_and_another_one_goes_on(
    asker: Asker, caplog: pytest.LogCaptureFixture
) -> None:
    asker.ask(SETTINGS, NOTHING)
    os.kill(child(asker), signal.SIGSEGV)
    wait_until(lambda: asker._child and asker._child.process.poll() is not None, what="its end")

    rows = asker.ask(SETTINGS, SHARE).to_pylist()

    assert [(row["topic"], row["partition"]) for row in rows] == [(None, None), ("t", 0), ("t", 1), ("u", 0)]
    # The listing was made before, by this process.
    assert rows[0]["error"] is None
    assert {row["error"] for row in rows[1:]} == {"the process that asks the brokers has died"}
    assert all(row["log_end_offset"] is None for row in rows)
    assert [record.exit_status for record in caplog.records] == [-signal.SIGSEGV]
    assert [row["error"] for row in asker.ask(SETTINGS, NOTHING).to_pylist()] == [None]


def test_request_to_stop_that_goes_to_all_processes_does_not_take_the_answers_of_the_last_batch(
    asker: Asker,
) -> None:
    asker.ask(SETTINGS, NOTHING)

    os.kill(child(asker), signal.SIGTERM)

    assert "leaders are not known" in asker.ask(SETTINGS, SHARE).to_pylist()[1]["error"]


@pytest.fixture
def rescue(asker: Asker) -> Iterator[threading.Timer]:
    """Kills the process, which hangs, if nobody else has done so within ten seconds."""
    asker.ask(SETTINGS, NOTHING)
    os.kill(child(asker), signal.SIGSTOP)
    rescue = threading.Timer(10, os.kill, (child(asker), signal.SIGKILL))
    rescue.start()
    yield rescue
    rescue.cancel()


def test_process_that_hangs_holds_no_batch_for_ever(
    asker: Asker, rescue: threading.Timer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(apart, "_CLIENT_S", 0.2)
        rows = asker.ask(SETTINGS, SHARE).to_pylist()

    assert rescue.is_alive()
    assert {row["error"] for row in rows[1:]} == {"the process that asks the brokers has died"}
    assert [row["error"] for row in asker.ask(SETTINGS, NOTHING).to_pylist()] == [None]


def test_process_that_hangs_holds_no_driver_that_ends(asker: Asker, rescue: threading.Timer) -> None:
    asker.close()

    assert rescue.is_alive()


def test_process_ends_with_the_one_that_asks_however_that_ends(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    script = (
        "from tests.integration.test_log_offsets_apart import *\n"
        "asker = Asker(); asker.ask(SETTINGS, NOTHING)\n"
        f"Path({str(said)!r}).write_text(str(child(asker)))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    subprocess.run([sys.executable, "-c", script], check=False)

    wait_until(
        lambda: not Path("/proc", said.read_text()).exists(), what="the end of the process that was asked"
    )
