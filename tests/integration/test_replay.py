"""A batch that fails behind a step runs again, and it is as if it had run once.

The job is one process here, so this is quick; `make fault` kills whole drivers, behind every step.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from pipeline.config.model import HistoryConfig
from pipeline.run.batch.steps import STEPS, Step
from pipeline.run.driver import Batch
from tests.support.broker import create_offsets_topic, small_broker
from tests.support.inject import RawRecord, inject
from tests.support.job import AMONG_GHOSTS, RunningJob, eager_plan, job_config, read_table
from tests.support.traffic import Traffic, control_records
from tests.support.undisturbed import (
    assert_groups_are_told,
    assert_nothing_doubled,
    assert_one_content_per_epoch,
    assert_same_state,
    rows,
)


def _decides_to_publish(batch: Batch) -> bool:
    rows = read_table(batch.services.config, "plan_state")
    return any((row["decision"], row["batch_id"]) == ("publish", batch.batch_id) for row in rows)


# Behind the first write, in the midst of the writes, between a decision, its record and its publication, and behind
# all; each in a batch that has something to lose there.
_STEPS: dict[str, Callable[[Batch], object]] = {
    "store_topic_offsets": lambda batch: batch.summary.counts,
    "store_group_history": lambda batch: "group_history" in batch.written,
    "store_control_messages": lambda batch: batch.summary.acks and batch.summary.orders,
    "make_plans": _decides_to_publish,
    "record_decisions": _decides_to_publish,
    "publish_plans": lambda batch: batch.published,
}
# As many restarts of the query in one fixture.
pytestmark = pytest.mark.timeout(3000)

_MOST_BATCHES = 60
"""Until a bomb has found the batch that it waits for."""
_HISTORY = HistoryConfig(interval_s=1, max_gap_s=1)
_PLAN = eager_plan(dry_run=False)


class _BombError(Exception):
    pass


class Bombs:
    """The steps, some of which fail behind their work, once, in a batch of their own."""

    def __init__(self) -> None:
        self.left = list(_STEPS)
        self.steps = tuple(self._armed(step) for step in AMONG_GHOSTS)

    def _armed(self, step: Step) -> Step:
        def run(batch: Batch) -> None:
            step(batch)
            name = step.__name__
            if not (self.left and self.left[0] == name):
                return
            # A batch that was let through resets the job's patience; and before everything is read nothing is published.
            is_armed = not batch.driver.replay.is_first and not batch.clock.behind
            if is_armed and _STEPS[name](batch):
                self.left.pop(0)
                raise _BombError

        run.__name__ = step.__name__
        return run


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
            job = RunningJob(config, steps=bombs.steps)
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
    assert set(_STEPS) < {step.__name__ for step in STEPS}


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
