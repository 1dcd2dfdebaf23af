"""Offsets of logs are asked for by a process that may die without harm, and that never outlives the one that asks."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from pipeline.errors import BrokerUnavailableError, PipelineError
from pipeline.kafka import beside
from pipeline.kafka.beside import Beside
from pipeline.kafka.sources.log_offsets.apart import ask_apart
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share
from pipeline.kafka.sources.records.ends_apart import EndsApart
from tests.support.waiting import wait_until

SETTINGS = LogOffsetsSettings(
    properties={"bootstrap.servers": "127.0.0.1:1", "log_level": "0"},
    topics_include=(".*",),
    topics_exclude=(),
    isolation="read_uncommitted",
    request_timeout_s=0.2,
    splits=1,
)
ENDS = EndsApart(properties=SETTINGS.properties, topics=("t",), timeout_s=SETTINGS.request_timeout_s)
NOTHING = Share(carries_listing=True)
SHARE = Share(topics=(("t", (0, 1)), ("u", (0,))), carries_listing=True)


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    process = Beside()
    monkeypatch.setattr(beside, "process", process)
    yield process
    process.close()


def child(process: Beside) -> int:
    assert process._child is not None
    return process._child.process.pid


def test_one_process_answers_all_questions(process: Beside) -> None:
    first = ask_apart(SETTINGS, NOTHING).to_pylist()
    pid = child(process)
    again = ask_apart(SETTINGS, NOTHING).to_pylist()

    assert [(row["topic"], row["error"]) for row in (*first, *again)] == [(None, None)] * 2
    assert child(process) == pid != os.getpid()


def test_brokers_that_do_not_answer_are_told_as_without_the_process() -> None:
    rows = ask_apart(SETTINGS, SHARE).to_pylist()

    assert [(row["topic"], row["partition"]) for row in rows] == [(None, None), ("t", 0), ("t", 1), ("u", 0)]
    assert all("leaders are not known" in row["error"] for row in rows[1:])


def test_process_that_dies_leaves_everything_unanswered_and_another_one_goes_on(
    process: Beside, caplog: pytest.LogCaptureFixture
) -> None:
    ask_apart(SETTINGS, NOTHING)
    os.kill(child(process), signal.SIGSEGV)
    wait_until(lambda: process._child and process._child.process.poll() is not None, what="its end")

    rows = ask_apart(SETTINGS, SHARE).to_pylist()

    assert [(row["topic"], row["partition"]) for row in rows] == [(None, None), ("t", 0), ("t", 1), ("u", 0)]
    # The listing was made before, by this process.
    assert rows[0]["error"] is None
    assert {row["error"] for row in rows[1:]} == {"the process that asks the brokers has died"}
    assert all(row["log_end_offset"] is None for row in rows)
    assert [record.exit_status for record in caplog.records] == [-signal.SIGSEGV]
    assert [row["error"] for row in ask_apart(SETTINGS, NOTHING).to_pylist()] == [None]


def test_ends_of_the_topics_are_asked_for_by_the_same_process_and_its_errors_are_told_here(
    process: Beside,
) -> None:
    ask_apart(SETTINGS, NOTHING)
    pid = child(process)

    with pytest.raises(BrokerUnavailableError, match="the Kafka cluster cannot be used"):
        ENDS()

    assert child(process) == pid


def test_process_that_dies_leaves_ends_to_be_asked_again_later(process: Beside) -> None:
    ask_apart(SETTINGS, NOTHING)
    os.kill(child(process), signal.SIGSEGV)
    wait_until(lambda: process._child and process._child.process.poll() is not None, what="its end")

    with pytest.raises(BrokerUnavailableError, match="the process that asks the brokers has died"):
        ENDS()

    with pytest.raises(BrokerUnavailableError, match="the Kafka cluster cannot be used"):
        ENDS()


def test_request_to_stop_that_goes_to_all_processes_does_not_take_the_answers_of_the_last_batch(
    process: Beside,
) -> None:
    ask_apart(SETTINGS, NOTHING)

    os.kill(child(process), signal.SIGTERM)

    assert "leaders are not known" in ask_apart(SETTINGS, SHARE).to_pylist()[1]["error"]


@pytest.fixture
def rescue(process: Beside) -> Iterator[threading.Timer]:
    """Kills the process, which hangs, if nobody else has done so within ten seconds."""
    ask_apart(SETTINGS, NOTHING)
    os.kill(child(process), signal.SIGSTOP)
    rescue = threading.Timer(10, os.kill, (child(process), signal.SIGKILL))
    rescue.start()
    yield rescue
    rescue.cancel()


def test_process_that_hangs_holds_no_batch_for_ever(
    rescue: threading.Timer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(beside, "_CLIENT_S", 0.2)
        rows = ask_apart(SETTINGS, SHARE).to_pylist()

    assert rescue.is_alive()
    assert {row["error"] for row in rows[1:]} == {"the process that asks the brokers has died"}
    assert [row["error"] for row in ask_apart(SETTINGS, NOTHING).to_pylist()] == [None]


def test_process_that_hangs_holds_no_driver_that_ends(process: Beside, rescue: threading.Timer) -> None:
    process.close()

    assert rescue.is_alive()


def test_process_ends_with_the_one_that_asks_however_that_ends(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    script = (
        "from tests.integration.test_beside import *\n"
        "process = beside.process; ask_apart(SETTINGS, NOTHING)\n"
        f"Path({str(said)!r}).write_text(str(child(process)))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    subprocess.run([sys.executable, "-c", script], check=False)

    wait_until(
        lambda: not Path("/proc", said.read_text()).exists(), what="the end of the process that was asked"
    )


def test_process_runs_the_code_of_the_one_that_asks_wherever_that_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "__init__.py").touch()
    (tmp_path / "logging.py").touch()
    monkeypatch.chdir(tmp_path)

    assert [row["error"] for row in ask_apart(SETTINGS, NOTHING).to_pylist()] == [None]


def _refused() -> None:
    raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


def test_error_that_cannot_be_sent_is_told_in_words(process: Beside) -> None:
    with pytest.raises(PipelineError, match=r"KafkaException: .*TOPIC_AUTHORIZATION_FAILED"):
        process.ask(30, _refused)
    pid = child(process)

    assert [row["error"] for row in ask_apart(SETTINGS, NOTHING).to_pylist()] == [None]
    assert child(process) == pid
