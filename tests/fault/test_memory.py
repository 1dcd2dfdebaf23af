"""What else can be lost or restored between two runs; the short form is in tests/integration."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.broker import small_broker
from tests.support.job.forgetting import ForgetfulJob, forgetful_job


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForgetfulJob]:
    with forgetful_job(tmp_path_factory.mktemp("memory") / "tables") as made:
        yield made


def test_run_goes_on_where_the_last_one_ended(world: ForgetfulJob) -> None:
    world.commit("g0", 0, 50)

    world.run()

    assert world.rows() == world.commits
    assert not world.said("read again from its start")


def test_lost_checkpoint_costs_nothing(world: ForgetfulJob) -> None:
    shutil.rmtree(world.root / "_checkpoint")
    world.commit("g1", 1, 51)

    world.run()

    assert world.rows() == world.commits
    assert not world.said("read again from its start")


def test_lost_partition_lag_is_filled_again(world: ForgetfulJob) -> None:
    world.lose("partition_lag")

    world.run()

    assert world.rows() == world.commits


def test_table_of_groups_restored_from_an_older_copy_is_noticed(world: ForgetfulJob, tmp_path: Path) -> None:
    shutil.copytree(world.root / "consumer_groups", tmp_path / "copy")
    world.commit("new-one", 0, 3)
    world.run()
    world.lose("consumer_groups")
    shutil.copytree(tmp_path / "copy", world.root / "consumer_groups")

    world.run()

    assert world.said("table consumer_groups is older than partition_lag")
    assert world.rows() == world.commits
    assert world.groups() == world.named


def test_lost_planner_state_does_not_silence_the_driver(world: ForgetfulJob) -> None:
    world.lose("planner_state")
    world.commit("g5", 1, 54)

    world.run()

    assert world.rows() == world.commits


def test_narrowed_filter_takes_rows_away_and_a_widened_one_brings_them_back(world: ForgetfulJob) -> None:
    world.run(groups_exclude=("g[0-2]",))
    assert world.rows() == {
        key: offset for key, offset in world.commits.items() if key[0] not in {"g0", "g1", "g2"}
    }

    world.run()

    assert world.said("source.groups_* have changed")
    assert world.rows() == world.commits


def test_cluster_that_was_built_again_under_the_same_name_leaves_no_ghosts(
    world: ForgetfulJob, tmp_path: Path
) -> None:
    # A copy: the other tests go on with the tables of the first cluster.
    shutil.copytree(world.root, tmp_path / "tables")
    with small_broker() as other:
        rebuilt = ForgetfulJob(other.bootstrap_servers, tmp_path / "tables")
        rebuilt.commit("g0", 0, 7)

        rebuilt.run()

        assert rebuilt.said("the tables were filled from Kafka cluster")
        assert rebuilt.rows() == rebuilt.commits == {("g0", 0): 7}
        assert rebuilt.groups() == {"g0"}
