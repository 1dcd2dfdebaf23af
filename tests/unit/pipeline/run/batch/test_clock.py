"""What a clock that cannot be right keeps from being planned."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.kafka.positions import Position
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.planning.memory import PlanInTopic, PlanMemory
from pipeline.planning.values import Published
from pipeline.run.batch.clock import due_after_ms, trouble, why_apart
from pipeline.run.batch.plans import evaluation
from pipeline.run.batch.plans.late import connect
from pipeline.tables.stamp import Stamp
from tests.support.job.batches import batch_of, idle_driver, stamp_of
from tests.support.job.frames import NOW_MS, decoded_rows


@pytest.mark.parametrize(
    ("interval_s", "batch_interval_s"), [(60, 30), (60, 5), (30, 30), (10, 30), (300, 45)]
)
def test_what_is_due_each_interval_is_due_at_the_batch_nearest_to_it_whatever_moment_late_batches_begin(
    interval_s: int, batch_interval_s: int
) -> None:
    late_ms = (0, 480, 20, 510, 0, 350, 470, 10, 500, 5)
    batches_ms = [number * batch_interval_s * 1000 + late for number, late in enumerate(late_ms * 30)]
    least_ms = due_after_ms(interval_s, batch_interval_s=batch_interval_s)

    due_ms = [batches_ms[0]]
    for at_ms in batches_ms:
        if at_ms - due_ms[-1] >= least_ms:
            due_ms.append(at_ms)

    gaps = {round((later - earlier) / 1000 / batch_interval_s) for earlier, later in pairwise(due_ms)}
    assert gaps == {max(round(interval_s / batch_interval_s), 1)}


HOUR_MS = 3_600_000
KEY = (OFFSETS_TOPIC, 3)
READ_ON = Stamp(batch_id=4, at_ms=NOW_MS - 30_000, positions={KEY: Position(9, at_end_ms=NOW_MS - 30_000)})


def apart(*commits_ms: int | None, before: Stamp | None = READ_ON, **now: Any) -> str | None:
    """Of a batch with commits of these times in partition 3 of the offsets topic."""
    rows = [
        {"row_kind": "commit", "committed_offset": 1, "partition": number, "commit_timestamp_ms": at_ms}
        for number, at_ms in enumerate(commits_ms)
    ]
    stamp = Stamp(batch_id=5, at_ms=NOW_MS, **now)
    return why_apart(decoded_rows(*rows).kind("commit"), stamp, before)


def test_coordinator_whose_clock_is_an_hour_off_is_named() -> None:
    ahead, behind = apart(NOW_MS + HOUR_MS), apart(NOW_MS - 2 * HOUR_MS, NOW_MS - HOUR_MS)

    assert "a broker is at least 60.0 min ahead of this host's, by the newest commit in partition 3" in (
        ahead or ""
    )
    assert "a broker is at least 59.5 min behind this host's" in (behind or "")


def test_commits_whose_time_shows_nothing_name_no_clock() -> None:
    old_ms = NOW_MS - HOUR_MS

    assert [
        apart(),
        apart(None),
        apart(NOW_MS + 170_000),
        apart(READ_ON.at_ms - 170_000),
        apart(old_ms, NOW_MS),
    ] == [None] * 5
    # Commits that wait to be read for the first time are as old as they are.
    assert apart(old_ms, before=None) is None
    assert apart(old_ms, before=replace(READ_ON, positions=None)) is None
    assert apart(old_ms, before=replace(READ_ON, reread=(KEY,))) is None
    assert apart(old_ms, reread=(KEY,)) is None
    # The batch before did not reach the end.
    behind = {KEY: Position(9, at_end_ms=READ_ON.at_ms - 1)}
    assert apart(old_ms, before=replace(READ_ON, positions=behind)) is None


def test_clock_of_this_host_that_is_wrong_is_no_reason_to_name_another() -> None:
    assert apart(NOW_MS + HOUR_MS, is_clock_behind=True) is None
    assert apart(NOW_MS - HOUR_MS, before=replace(READ_ON, is_clock_behind=True)) is None


@pytest.mark.parametrize("at_ms", [-1, 0])
def test_commit_without_a_time_names_no_clock(at_ms: int) -> None:
    assert apart(at_ms) is None


def knowing(epoch: int) -> PlanMemory:
    """Of one plan with that epoch."""
    return PlanMemory(published={"g": Published(epoch=epoch, target_hash="", base_hash="", valid_until_ms=0)})


@pytest.mark.parametrize("epoch", [1, NOW_MS // 1000, NOW_MS // 1000 + 5])
def test_epoch_of_an_earlier_version_or_of_a_host_whose_clock_is_a_little_ahead_is_no_trouble(
    epoch: int,
) -> None:
    assert trouble(NOW_MS, NOW_MS, knowing(epoch)) is None
    assert trouble(NOW_MS, NOW_MS, PlanMemory()) is None


def test_epoch_behind_which_the_clock_is_stands_in_words_with_its_group_and_its_time() -> None:
    why = trouble(NOW_MS, NOW_MS, knowing(NOW_MS // 1000 + 7200)) or ""

    assert "clock says 2023-11-14 22:13:20Z" in why
    assert (
        "of group g in recommendations or on the control topic is dated 2023-11-15 00:13:20Z, 2.0 h later"
        in why
    )
    assert "; set this host's clock" in why


def test_epoch_that_is_no_time_is_told_like_any_other() -> None:
    assert f"epoch {2**53} of group g" in (trouble(NOW_MS, NOW_MS, knowing(2**53)) or "")


class Publisher:
    """Stands for one that connects when it is asked, and finds an epoch of next year on the topic."""

    def __init__(self, memory: PlanMemory, epoch: int) -> None:
        self._memory = memory
        self._epoch = epoch

    def unavailable(self, _unsent: Any) -> None:
        self._memory.on_connected({"g": PlanInTopic(self._epoch)}, {})


def test_epoch_that_is_found_on_the_topic_in_the_midst_of_a_batch_holds_its_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluation, "now_ms", lambda: NOW_MS + 4_000)
    memory = PlanMemory()
    driver = idle_driver(memory=memory, publisher=Publisher(memory, NOW_MS // 1000 + 31_536_000))

    settings = evaluation._settings(batch_of(driver, stamp=stamp_of(at_ms=NOW_MS)), ())

    assert "of group g" in (settings.held or "")
    assert settings.least_epoch == NOW_MS // 1000


def test_clock_that_stands_still_ahead_of_time_gives_no_epoch() -> None:
    memory = PlanMemory()
    driver = idle_driver(memory=memory, publisher=SimpleNamespace(unavailable=lambda _on_connected: None))
    stamp = stamp_of(at_ms=NOW_MS + 31_536_000_000, held="the clock", is_clock_behind=True)

    settings = evaluation._settings(batch_of(driver, stamp=stamp), ())

    assert (settings.held, settings.least_epoch) == ("the clock", 0)
    assert connect(driver.services, memory) is None
