import signal
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path

import pytest

from pipeline.errors import FencedError
from pipeline.run import main
from pipeline.run.job import Job


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_stops_the_job(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lagwise.toml").write_text("")

    def run(job: Job) -> None:
        # Where pyspark starts in the main thread, it replaces the handler of SIGINT.
        assert threading.current_thread() is not threading.main_thread()
        signal.raise_signal(number)
        assert job.stop.wait(10)

    monkeypatch.setattr(Job, "run", run)
    # It looks twenty times a second for what it looks for once.
    monkeypatch.setattr(main, "wait", lambda jobs, timeout: wait(jobs, timeout=timeout / 20))

    assert main.run(tmp_path / "lagwise.toml", once=False) == 0


@pytest.mark.parametrize(
    ("is_incomplete", "status"), [(False, 0), (True, 3)], ids=["everything read", "in vain"]
)
def test_once_tells_by_its_exit_status_whether_it_read_everything(
    is_incomplete: bool, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lagwise.toml").write_text("")

    def run(job: Job) -> None:
        job.is_incomplete = is_incomplete

    monkeypatch.setattr(Job, "run", run)

    assert main.run(tmp_path / "lagwise.toml", once=True) == status


def test_signal_that_comes_while_the_process_ends_does_not_change_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lagwise.toml").write_text("")
    monkeypatch.setattr(Job, "run", lambda job: job.stop.set())
    monkeypatch.setattr("sys.argv", ["lagwise", "--config", str(tmp_path / "lagwise.toml")])

    assert main.main() == 0
    assert {signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} == {signal.SIG_IGN}


@pytest.mark.parametrize(("is_driver_of_yarn", "status"), [(False, 4), (True, 0)])
def test_driver_whose_tables_were_taken_over_is_not_started_again(
    is_driver_of_yarn: bool, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lagwise.toml").write_text("")

    def run(_job: Job) -> None:
        raise FencedError("the tables belong to driver b now")

    monkeypatch.setattr(Job, "run", run)
    monkeypatch.setattr(main, "is_driver_of_yarn", lambda: is_driver_of_yarn)

    assert main.run(tmp_path / "lagwise.toml", once=False) == status
