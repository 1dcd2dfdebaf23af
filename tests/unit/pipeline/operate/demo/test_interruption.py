import signal
import subprocess
import sys
from concurrent.futures import Future
from threading import Event, Timer

import pytest

from pipeline.operate.demo import interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_first_signal_asks_and_handlers_are_as_before_afterwards(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    with interruption.ended_by_signals(tidy=lambda: None) as asked:
        signal.raise_signal(number)

    assert asked.is_set()
    assert signal.getsignal(number) is before


def test_second_signal_ends_the_process_after_tidying_up() -> None:
    script = """
import os, signal
from pipeline.operate.demo.interruption import ended_by_signals
with ended_by_signals(lambda: os.write(1, b"tidy")):
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
    os.write(1, b"still here")
"""

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (130, "tidy")


def test_work_that_lasts_does_not_hold_back_the_end_that_was_asked_for() -> None:
    asked, lasts = Event(), Future[None]()
    Timer(0.05, asked.set).start()

    assert not interruption.is_done(lasts, asked)


def test_work_is_waited_for_and_raises_what_it_raises() -> None:
    done, failed = Future[None](), Future[None]()
    Timer(0.05, done.set_result, [None]).start()
    failed.set_exception(ZeroDivisionError())

    assert interruption.is_done(done, Event())
    with pytest.raises(ZeroDivisionError):
        interruption.is_done(failed, Event())
