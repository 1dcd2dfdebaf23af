import signal
import subprocess
import sys

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
