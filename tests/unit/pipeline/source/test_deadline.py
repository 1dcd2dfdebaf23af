"""Deadlines: a process that hangs is ended, and one that works is not."""

import subprocess
import sys
import textwrap

import pytest

from pipeline.source.deadline import each_within


def run(body: str) -> int:
    """Exit status of a process that runs this with deadlines of a tenth of a second."""
    script = f"""
import time
from pipeline.source import deadline
deadline.CLIENT_S = 0.1
{textwrap.dedent(body)}
"""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL, timeout=60).returncode


@pytest.mark.parametrize(
    "body",
    [
        "with deadline.within(0): time.sleep(60)",
        # The interpreter's lock is held all the time.
        "with deadline.within(0): sum(range(10**11))",
        "list(deadline.each_within(0, (time.sleep(60) for _ in range(1))))",
    ],
    ids=["waits", "computes", "has no piece"],
)
def test_process_that_hangs_is_ended(body: str) -> None:
    assert run(body) != 0


@pytest.mark.parametrize(
    "body",
    [
        "with deadline.within(0): pass\ntime.sleep(0.5)",
        "for _ in deadline.each_within(0, iter('abc')): time.sleep(0.3)",
    ],
    ids=["done", "who takes the pieces is slow"],
)
def test_process_that_works_goes_on(body: str) -> None:
    assert run(body) == 0


def test_pieces_are_handed_on_one_by_one() -> None:
    assert list(each_within(60, iter([1, 2, 3]))) == [1, 2, 3]
