"""Pokes alongside the batches: once for each plan, not too often, a few at a time, and no batch waits for one."""

import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from pipeline.kafka.poke import Outcome, Question
from pipeline.publish.pokes import Poke, Pokes
from tests.support.waiting import wait_until

LATER_MS = 32_503_680_000_000


@dataclass
class Played:
    """Carries out pokes when the test says so."""

    open: threading.Event = field(default_factory=threading.Event)
    asked: list[Question] = field(default_factory=list)
    running: int = 0
    most: int = 0
    outcome: Outcome | Exception | None = field(default_factory=Outcome)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, question: Question) -> Outcome | None:
        with self.lock:
            self.asked.append(question)
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.open.wait(30)
        with self.lock:
            self.running -= 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def groups(self) -> Counter[str]:
        return Counter(one.group_id for one in self.asked)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: (len(self.asked), self.running) == (count, 0), what=f"{count} pokes")


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def poke(group_id: str = "g", epoch: int = 1, valid_until_ms: int = LATER_MS) -> Poke:
    return Poke(group_id=group_id, epoch=epoch, members=("a",), valid_until_ms=valid_until_ms)


@pytest.fixture
def played() -> Played:
    one = Played()
    one.open.set()
    return one


def test_plan_is_poked_for_once(played: Played) -> None:
    clock = Clock()
    pokes = Pokes({}, ask=played, clock_s=clock)

    for _ in range(3):
        pokes.request([poke()])
        played.wait_for(1)
        clock.now_s += 100
    pokes.request([poke(epoch=2)])

    played.wait_for(2)


def test_group_is_not_poked_again_so_soon(played: Played) -> None:
    clock = Clock()
    pokes = Pokes({}, ask=played, clock_s=clock)

    pokes.request([poke(epoch=1)])
    played.wait_for(1)
    clock.now_s += 29
    pokes.request([poke(epoch=2), poke("h", epoch=2)])
    clock.now_s += 1
    pokes.request([poke(epoch=3)])

    played.wait_for(3)
    assert played.groups() == {"g": 2, "h": 1}


def test_nobody_waits_for_a_poke_and_only_a_few_run_at_once(played: Played) -> None:
    played.open.clear()
    pokes = Pokes({}, ask=played)

    pokes.request([poke(f"g{number}") for number in range(5)])
    wait_until(lambda: played.running == 2, what="two pokes that hang")
    played.open.set()

    played.wait_for(5)
    assert played.most == 2


def test_plan_that_is_replaced_before_its_turn_is_not_poked_for(played: Played) -> None:
    played.open.clear()
    clock = Clock()
    pokes = Pokes({}, ask=played, clock_s=clock)

    pokes.request([poke("x"), poke("y")])
    wait_until(lambda: played.running == 2, what="two pokes that hang")
    pokes.request([poke("g", epoch=1)])
    clock.now_s += 30
    pokes.request([poke("g", epoch=2), poke("z")])
    played.open.set()

    played.wait_for(4)
    assert played.groups() == {"x": 1, "y": 1, "g": 1, "z": 1}


def test_plan_that_is_over_before_its_turn_is_not_poked_for(played: Played) -> None:
    pokes = Pokes({}, ask=played)

    pokes.request([poke("over", valid_until_ms=1), poke("g")])

    played.wait_for(1)
    assert played.groups() == {"g": 1}


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (None, "ended without reporting a cause"),
        (OSError("no memory"), "no memory"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "invalid start byte"),
        (Outcome(error="not allowed"), "not allowed"),
        (Outcome(why_not="the group is gone"), "the group is gone"),
    ],
)
def test_poke_that_fails_is_logged_and_the_next_one_runs(
    played: Played, outcome: Outcome | Exception | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pipeline")
    played.outcome = outcome
    pokes = Pokes({}, ask=played)

    pokes.request([poke("g"), poke("h"), poke("i")])

    played.wait_for(3)
    wait_until(lambda: len(caplog.records) == 3, what="three lines")
    assert all(words in str(vars(record)) for record in caplog.records)
