"""Tables and checkpoint lost or restored between two runs, tombstones compacted away: all is right after one run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.inject import offsets_partition
from tests.support.job.forgetting import ForgetfulJob, forgetful_job


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForgetfulJob]:
    with forgetful_job(tmp_path_factory.mktemp("memory") / "tables") as made:
        yield made


def test_lost_tables_are_filled_again_under_the_old_checkpoint(world: ForgetfulJob) -> None:
    world.lose()
    world.commit("g2", 0, 52)

    world.run()

    assert world.rows() == world.commits
    assert world.groups() == world.named


def test_tables_and_checkpoint_restored_together_from_an_older_copy_catch_up(
    world: ForgetfulJob, tmp_path: Path
) -> None:
    shutil.copytree(world.root, tmp_path / "copy")
    world.commit("g3", 1, 53)
    world.commit("g4", 0, None)
    world.run()
    shutil.rmtree(world.root)
    shutil.copytree(tmp_path / "copy", world.root)

    world.run()

    assert world.rows() == world.commits


def test_group_whose_tombstones_were_compacted_away_meanwhile_is_no_ghost(world: ForgetfulJob) -> None:
    partition = offsets_partition("g5")
    world.commit("g5", 1, None)
    world.compact(partition)

    world.run()

    assert world.said("delete.retention.ms")
    assert world.rows() == world.commits
