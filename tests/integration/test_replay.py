"""A batch that fails behind a step runs again, and it is as if it had run once.

The job is one process here, so this is quick; `make fault` kills whole drivers, behind every step.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import pytest

from pipeline.config.model import HistoryConfig
from pipeline.run.batch.steps import run
from pipeline.run.health.monitor import Monitor
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.inject import RawRecord, inject
from tests.support.brokers.traffic import Traffic, control_records
from tests.support.job.job import RunningJob, eager_plan, job_config, read_table
from tests.support.job.steps import STEP_NAMES, AmongGhosts, WatchedSteps
from tests.support.job.undisturbed import (
    assert_groups_are_told,
    assert_nothing_doubled,
    assert_one_content_per_epoch,
    assert_same_state,
    rows,
)


def _decides_to_publish(steps: WatchedSteps) -> bool:
    batch = steps.batch
    assert batch is not None
    rows = read_table(batch.services.config, "plan_state")
    return any((row["decision"], row["batch_id"]) == ("publish", batch.stamp.batch_id) for row in rows)


def _counts(steps: WatchedSteps) -> Counter[str]:
    assert steps.batch is not None
    return Counter(steps.batch.read.summary.counts)


def _writes_history(steps: WatchedSteps) -> bool:
    assert steps.batch is not None
    store = steps.batch.services.store
    newest = store.stamp("group_history")
    return newest is not None and newest.tick == steps.batch.stamp.tick


# Behind the first write, in the midst of the writes, between a decision, its record and its publication, and behind
# all; each in a batch that has something to lose there.
_STEPS: dict[str, Callable[[WatchedSteps], object]] = {
    "store_topic_offsets": _counts,
    "store_group_history": _writes_history,
    "store_control_messages": lambda steps: _counts(steps)["ack"] and _counts(steps)["orders"],
    "make_plans": _decides_to_publish,
    "record_decisions": _decides_to_publish,
    "publish_plans": lambda steps: steps.values["publish_plans"],
}
# As many restarts of the query in one fixture.
pytestmark = pytest.mark.timeout(3000)

_MOST_BATCHES = 60
"""Until a bomb has found the batch that it waits for."""
_HISTORY = HistoryConfig(interval_s=1, max_gap_s=1)
_PLAN = eager_plan(dry_run=False)


class _BombError(Exception):
    pass


class Bombed(AmongGhosts):
    """The steps, one of which fails behind its work where there is something to lose."""

    def __init__(self, monitor: Monitor, *, left: list[str]) -> None:
        super().__init__(monitor)
        self.left = left

    def behind(self, name: str) -> None:
        if self.left[:1] != [name] or self.batch is None:
            return
        # A batch that was let through resets the job's patience; and before everything is read nothing is published.
        is_armed = not self.driver.replay.is_first and not self.batch.stamp.behind
        if is_armed and _STEPS[name](self):
            self.left.pop(0)
            raise _BombError


class Bombs:
    """Steps that fail once each, in a batch of their own."""

    def __init__(self) -> None:
        self.left = list(_STEPS)
        self.run_batch = partial(run, steps=partial(Bombed, left=self.left))


class Replayed(NamedTuple):
    bootstrap: str
    bombs: Bombs
    root: str
    calm: str


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replayed]:
    folder = tmp_path_factory.mktemp("replay")
    bombs = Bombs()
    with small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        with Traffic(bootstrap) as traffic:
            config = job_config(bootstrap, folder / "replayed", history=_HISTORY, plan=_PLAN)
            job = RunningJob(config, run_batch=bombs.run_batch)
            job.start()
            for number in range(len(_STEPS)):
                inject(
                    bootstrap, [RawRecord(key=b"\x00\x63", value=f"garbage {number}".encode(), partition=0)]
                )
                for _ in range(_MOST_BATCHES):
                    traffic.disturb()
                    job.wait_for_batches()
                    if len(bombs.left) < len(_STEPS) - number:
                        break
            job.stop()
        for name in ("replayed", "calm"):
            last = RunningJob(job_config(bootstrap, folder / name, history=_HISTORY), once=True)
            last.start()
            last.join(400)
        yield Replayed(bootstrap, bombs, str(folder / "replayed"), str(folder / "calm"))


def test_every_bomb_went_off(replayed: Replayed) -> None:
    assert replayed.bombs.left == []
    assert set(_STEPS) < set(STEP_NAMES)


def test_replayed_batches_leave_the_state_of_a_calm_run(replayed: Replayed) -> None:
    assert_same_state(replayed.root, replayed.calm)


def test_replayed_batches_double_no_row_and_no_decision(replayed: Replayed) -> None:
    assert_nothing_doubled(replayed.root)


def test_history_of_groups_ends_with_what_they_are(replayed: Replayed) -> None:
    assert_groups_are_told(replayed.root)
    assert_groups_are_told(replayed.calm)


def test_replayed_batches_publish_no_epoch_with_two_contents(replayed: Replayed) -> None:
    assert_one_content_per_epoch(replayed.root, control_records(replayed.bootstrap))


def test_what_was_bad_is_in_quarantine_once_in_both(replayed: Replayed) -> None:
    key = ("topic", "partition", "offset", "value")
    assert rows(replayed.root, "quarantine", key) == rows(replayed.calm, "quarantine", key)
