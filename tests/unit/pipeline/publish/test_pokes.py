"""Pokes alongside the batches: once for each plan, not too often, a few at a time, and no batch waits for one."""

import logging
import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from pipeline.kafka.poke import Outcome, Question
from pipeline.publish import pokes as publish_pokes
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

    def epochs(self) -> list[tuple[str, str]]:
        return [(one.group_id, *one.members) for one in self.asked]

    def groups(self) -> Counter[str]:
        return Counter(one.group_id for one in self.asked)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: (len(self.asked), self.running) == (count, 0), what=f"{count} pokes")


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def logged(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Lines of pokes: a thread of another test's client may log something, too."""
    return [one for one in caplog.records if one.name == "pipeline.publish.pokes"]


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [one for one in logged(caplog) if one.levelname == "WARNING"]


def poke(group_id: str = "g", epoch: int = 1, valid_until_ms: int = LATER_MS) -> Poke:
    """A poke whose question names the epoch, in place of a member."""
    return Poke(group_id=group_id, epoch=epoch, members=(str(epoch),), valid_until_ms=valid_until_ms)


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
    played.wait_for(2)
    pokes.request([poke(epoch=3), poke("i")])
    played.wait_for(3)
    assert played.groups() == {"g": 1, "h": 1, "i": 1}
    clock.now_s += 1
    pokes.request([poke("j")])

    played.wait_for(5)
    assert played.groups() == {"g": 2, "h": 1, "i": 1, "j": 1}
    # Of the plans that were put off, only the newest one.
    assert ("g", "3") in played.epochs()


def test_plan_that_is_put_off_is_poked_for_without_another_plan_and_no_thread_stays(played: Played) -> None:
    pokes = Pokes({}, ask=played, min_interval_s=0.05)

    pokes.request([poke(epoch=1)])
    played.wait_for(1)
    pokes.request([poke(epoch=2)])

    played.wait_for(2)
    pokes.finish()
    assert pokes._threads == 0


def test_plan_that_is_over_while_it_is_put_off_is_not_poked_for(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    pokes = Pokes({}, ask=played, clock_s=clock)
    pokes.request([poke(epoch=1)])
    played.wait_for(1)
    pokes.request([poke(epoch=2)])

    monkeypatch.setattr(publish_pokes, "now_ms", lambda: LATER_MS)
    clock.now_s += 30
    pokes.request([])

    pokes.finish()
    assert played.epochs() == [("g", "1")]


def test_plan_that_is_withdrawn_before_its_turn_is_not_poked_for(
    played: Played, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pipeline")
    played.open.clear()
    pokes = Pokes({}, ask=played)
    pokes.request([poke("x"), poke("y"), poke("withdrawn", epoch=7), poke("z")])
    wait_until(lambda: played.running == 2, what="two pokes that hang")

    pokes.forget(["withdrawn", "unknown"])
    played.open.set()

    pokes.finish()
    assert played.groups() == {"x": 1, "y": 1, "z": 1}
    (said,) = [vars(one) for one in caplog.records if one.message == "the group is not poked"]
    assert (said["group"], said["epoch"]) == ("withdrawn", 7)


def test_put_off_plan_that_is_withdrawn_is_not_poked_for(played: Played) -> None:
    pokes = Pokes({}, ask=played, clock_s=Clock())
    pokes.request([poke(epoch=1)])
    played.wait_for(1)
    pokes.request([poke(epoch=2)])

    pokes.forget(["g"])

    # Its clock stands still, so a plan that is put off would be so for ever.
    pokes.finish(within_s=30)
    assert pokes._threads == 0
    assert played.epochs() == [("g", "1")]


def test_end_waits_for_queued_pokes_but_not_for_one_that_hangs(
    played: Played, caplog: pytest.LogCaptureFixture
) -> None:
    pokes = Pokes({}, ask=played)
    pokes.request([poke(f"g{number}") for number in range(5)])
    pokes.finish()
    assert len(played.groups()) == 5
    assert warnings(caplog) == []

    played.open.clear()
    pokes.request([poke("a"), poke("b"), poke("left")])
    wait_until(lambda: played.running == 2, what="two pokes that hang")
    pokes.finish(within_s=0)

    (said,) = warnings(caplog)
    assert vars(said)["groups"] == ["left"]
    played.open.set()


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
    # The last pokes of the test before may end during this one, and are logged, too.
    wait_until(lambda: sum(words in str(vars(record)) for record in logged(caplog)) == 3, what="three lines")
