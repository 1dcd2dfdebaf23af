"""No child outlives the process that started it through the watchdog."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pipeline.local import watchdog
from tests.support.brokers.broker import is_alive
from tests.support.waiting import wait_until

# What a program does that starts a broker and then dies without a word; optionally a forked child of it lives on
# and holds the pipe to the watchdog open.
PARENT = """
import os, subprocess, sys, time
command = [sys.executable, "-IS", sys.argv[1], "5", *sys.argv[3:]]
dog = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
child = dog.stdout.readline().strip()
heir = os.fork() if sys.argv[2] == "fork" else None
if heir != 0:
    print(child, heir or "", flush=True)
time.sleep(600)
"""
SLEEPER = (sys.executable, "-IS", "-c", "import time; time.sleep(600)")
STUBBORN = (
    *(sys.executable, "-IS", "-c"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)",
)


# Java handles SIGTERM, and a handler does not run in a stopped process.
POLITE = (
    *(sys.executable, "-IS", "-c"),
    (
        "import signal, time, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print(flush=True); "
        "time.sleep(600)"
    ),
)


def start(*command: str, grace_s: float = 5) -> tuple["subprocess.Popen[str]", int]:
    """The watchdog, and the process id of its child."""
    dog = subprocess.Popen(
        [sys.executable, "-IS", watchdog.__file__, str(grace_s), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert dog.stdout
    return dog, int(dog.stdout.readline())


@pytest.mark.parametrize("heir", ["no", "fork"], ids=["alone", "forked child holds the pipe"])
def test_child_ends_when_the_parent_is_killed(heir: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", PARENT, watchdog.__file__, heir, *SLEEPER],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout
        child, *heirs = map(int, parent.stdout.readline().split())
        assert is_alive(child)

        parent.kill()

        wait_until(lambda: not is_alive(child), what="end of the child", within_s=10)
        for pid in heirs:
            os.kill(pid, signal.SIGKILL)


def test_closing_the_pipe_ends_the_child_politely() -> None:
    dog, child = start(*SLEEPER)

    with dog:
        assert dog.stdin
        dog.stdin.close()

        assert dog.wait(10) == 128 + signal.SIGTERM
    assert not is_alive(child)


def test_a_child_that_does_not_listen_is_killed_after_the_grace() -> None:
    dog, child = start(*STUBBORN, grace_s=0.2)
    with dog:
        assert dog.stdin
        assert dog.stderr
        dog.stderr.readline()
        before = time.monotonic()
        dog.stdin.close()

        assert dog.wait(10) == 128 + signal.SIGKILL
        assert time.monotonic() - before >= 0.2
    assert not is_alive(child)


def test_a_stopped_child_still_ends_politely() -> None:
    dog, child = start(*POLITE)

    with dog:
        assert dog.stdin
        assert dog.stderr
        dog.stderr.readline()
        os.kill(child, signal.SIGSTOP)
        dog.stdin.close()

        assert dog.wait(10) == 7


def test_exit_status_of_the_child_is_passed_on() -> None:
    dog, _ = start(sys.executable, "-IS", "-c", "raise SystemExit(7)")

    with dog:
        assert dog.wait(10) == 7
