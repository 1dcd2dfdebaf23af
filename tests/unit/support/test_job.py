"""When a job of a test begins its batches; the job is one that does nothing else."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.run.job import Job
from pipeline.run.query import Report
from tests.support.job import job as job_module
from tests.support.job.batches import stamp_of
from tests.support.job.job import RunningJob, job_config


class World:
    """A job, and what its batches see and leave: the number as it was when they began."""

    number = 0
    batches_left = math.inf

    def __init__(self, root: Path, *, rests: bool) -> None:
        self.job = RunningJob(job_config("127.0.0.1:1", root), rests=rests)

    def run(self, job: Job) -> None:
        while not job.stop.is_set() and self.batches_left > 0:
            seen = self.number
            # Changes come in the midst of a batch, too.
            job.stop.wait(0.002)
            self.batches_left -= 1
            job.on_batch(report(seen))


def report(batch_id: int) -> Report:
    return Report(
        stamp=stamp_of(batch_id=batch_id),
        seconds=0,
        seconds_by_step={},
        counts={},
        published=0,
        is_complete=True,
        is_overdue=False,
        has_read=True,
        unanswered=0,
        offsets_left=0,
        is_settled=True,
        records_left=0,
        waited_s=0,
    )


@pytest.fixture(params=[True, False], ids=["rests", "goes on"])
def world(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """After the first batch."""
    made = World(tmp_path, rests=request.param)

    def run(job: Job) -> None:
        made.run(job)

    monkeypatch.setattr(Job, "run", run)
    monkeypatch.setattr(job_module, "_LOOK_EVERY_S", 0.001)
    made.job.start()
    made.job.wait(lambda: made.job.reports, what="the first batch")
    yield made
    made.job.stop()


@pytest.mark.parametrize("count", [1, 2])
def test_batches_that_are_waited_for_began_after_the_call(world: World, count: int) -> None:
    world.number, before = 1, len(world.job.reports)

    world.job.wait_for_batches(count)

    seen = [finished.stamp.batch_id for finished in world.job.reports[before:]]
    assert seen.count(1) >= count


@pytest.mark.parametrize("world", [True], indirect=True)
def test_job_that_rests_runs_no_batch_that_nobody_waits_for(world: World) -> None:
    before = len(world.job.reports)

    world.job.wait_for_batches()
    world.job.wait_for_batches()

    assert len(world.job.reports) == before + 2


@pytest.mark.parametrize("world", [True], indirect=True)
def test_job_that_rests_goes_on_to_its_end_when_that_is_waited_for(world: World) -> None:
    before, world.batches_left = len(world.job.reports), 5

    world.job.join(10)

    assert len(world.job.reports) == before + 5
