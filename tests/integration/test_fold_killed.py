"""A fold whose process dies: tried again, then the query is started again, and the third end in a row ends the driver."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.errors import QueryFailedError
from pipeline.run.batch import lag
from pipeline.run.tasks.tables import LagFold
from pipeline.tables.reading import Tables
from tests.support.job.forgetting import ForgetfulJob, State, forgetful_job

ATTEMPTS = 4
"""Of a task, see `run.spark.session`."""
QUERIES = 3
"""Ends in a row that end the driver."""
FOR_EVER = 1_000
STARTED_AGAIN = "the query failed and is started again"


@dataclass(frozen=True, slots=True, kw_only=True)
class DyingFold(LagFold):
    """Takes its process with it until it has done so as often as it is told to."""

    deaths: str
    """File with a byte for each; beside it stands how many there are to be."""

    def __call__(self, tables: Tables, commits: pa.Table, where: pc.Expression | None) -> pa.Table:
        so_far = Path(self.deaths)
        if so_far.stat().st_size < int(so_far.with_suffix(".wanted").read_text(encoding="ascii")):
            with so_far.open("a", encoding="ascii") as file:
                file.write("x")
            os._exit(7)
        return LagFold.__call__(self, tables, commits, where)


class Told(NamedTuple):
    """What came of a run."""

    deaths: int
    started_again: int
    rows: State
    commits: State
    failure: BaseException | None
    messages: list[str]


class Deadly:
    """A job whose folds die, run after run."""

    def __init__(self, world: ForgetfulJob, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._deaths = folder / "deaths"
        patch.setattr(lag, "LagFold", partial(DyingFold, deaths=str(self._deaths)))

    def run(self, *, deaths: int) -> Told:
        """The next run, which begins with so many deaths."""
        self._deaths.write_bytes(b"")
        self._deaths.with_suffix(".wanted").write_text(str(deaths), encoding="ascii")
        failure: BaseException | None = None
        try:
            self._world.run()
        except QueryFailedError as error:
            failure = error
        return Told(
            deaths=self._deaths.stat().st_size,
            started_again=sum(STARTED_AGAIN in line for line in self._world.messages),
            rows=self._world.rows(),
            commits=dict(self._world.commits),
            failure=failure,
            messages=self._world.messages,
        )


class Story(NamedTuple):
    """Three runs, before each of which a group has committed."""

    once: Told
    """The task has died as often as Spark begins it, and then no more."""
    always: Told
    after: Told
    """Nothing dies."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("fold")
    with forgetful_job(folder / "tables") as world, pytest.MonkeyPatch.context() as patch:
        deadly = Deadly(world, folder, patch)
        world.commit("g1", 1, 61)
        once = deadly.run(deaths=ATTEMPTS)
        world.commit("g2", 0, 63)
        always = deadly.run(deaths=FOR_EVER)
        yield Story(once, always, deadly.run(deaths=0))


def test_fold_that_dies_four_times_has_the_query_started_again_and_the_batch_lands_whole(
    story: Story,
) -> None:
    assert (story.once.deaths, story.once.started_again) == (ATTEMPTS, 1)
    assert story.once.failure is None
    assert story.once.rows == story.once.commits


def test_line_about_it_names_the_fold_and_what_ended_it(story: Story) -> None:
    (line,) = [line for line in story.once.messages if STARTED_AGAIN in line]

    assert "partition_lag" in line
    assert "Python worker exited unexpectedly" in line


def test_third_end_in_a_row_ends_the_driver_and_says_why_and_what_to_do(story: Story) -> None:
    said = str(story.always.failure)

    assert isinstance(story.always.failure, QueryFailedError)
    assert (story.always.deaths, story.always.started_again) == (QUERIES * ATTEMPTS, QUERIES - 1)
    assert "3 times in a row" in said
    assert "partition_lag" in said
    assert "Python worker exited unexpectedly" in said
    assert "start the driver again" in said
    assert len(said.splitlines()) == 1


def test_nothing_of_a_batch_that_could_not_be_folded_is_skipped(story: Story) -> None:
    assert story.always.rows == story.once.commits
    assert story.after.rows == story.after.commits != story.once.commits
    assert story.after.failure is None
    assert not any("read again from its start" in line for line in story.after.messages)
