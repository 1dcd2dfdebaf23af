"""Backups made beside a running driver, restored under another root: lag is right after one run, epochs only rise."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from deltalake import DeltaTable

from pipeline.config.model import Config
from pipeline.tables.reading import Tables
from pipeline.tables.upkeep.backup import back_up
from tests.support.brokers.broker import admin_client
from tests.support.brokers.inject import commit_record, inject, offsets_partition
from tests.support.brokers.traffic import CONTROL_TOPIC, control_records
from tests.support.groups.group_records import group_record, member
from tests.support.job.forgetting import ForgetfulJob, forgetful_job
from tests.support.job.job import RunningJob, eager_plan, running
from tests.support.job.undisturbed import assert_groups_are_told, assert_nothing_doubled, rows

PLANNED = "planned"


class RestoredJob(ForgetfulJob):
    """The job on tables that were restored under a root of their own."""

    def __init__(self, lost: ForgetfulJob, backup: Path, root: Path) -> None:
        """Restore; what the tables ought to say is what those that were lost ought to."""
        self.bootstrap, self.commits, self.named = lost.bootstrap, lost.commits, lost.named
        self.root = root
        self.messages = []
        shutil.copytree(backup, root)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForgetfulJob]:
    with forgetful_job(tmp_path_factory.mktemp("restore") / "tables") as made:
        yield made


@pytest.fixture(scope="module")
def backup(world: ForgetfulJob, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made while a driver writes batch after batch and commits come."""
    folder = tmp_path_factory.mktemp("backup") / "copy"
    with running(world.config(), rests=False) as job:
        for copied in back_up(Tables(str(world.root)), folder):
            if copied.name in {"partition_lag", "consumer_groups"}:
                world.commit(f"during-{copied.name}", 0, 7)
                job.wait_for_batches()
    return folder


def test_restored_tables_catch_up_with_what_came_since(
    world: ForgetfulJob, backup: Path, tmp_path: Path
) -> None:
    world.commit("later", 1, 8)
    world.commit("g1", 1, None)
    restored = RestoredJob(world, backup, tmp_path / "tables")

    restored.run()

    assert restored.rows() == world.commits
    assert restored.groups() == world.named
    assert not restored.said("read again from its start")
    assert_nothing_doubled(str(restored.root))
    assert_groups_are_told(str(restored.root))


def test_checkpoint_from_another_moment_does_no_harm(
    world: ForgetfulJob, backup: Path, tmp_path: Path
) -> None:
    restored = RestoredJob(world, backup, tmp_path / "tables")
    shutil.copytree(world.root / "_checkpoint", restored.root / "_checkpoint")

    restored.run()

    assert restored.rows() == world.commits
    assert_nothing_doubled(str(restored.root))


def test_backup_that_is_older_than_what_the_offsets_topic_remembers_is_read_anew(
    world: ForgetfulJob, backup: Path, tmp_path: Path
) -> None:
    world.commit("g5", 1, None)
    world.compact(offsets_partition("g5"))
    restored = RestoredJob(world, backup, tmp_path / "tables")

    restored.run()

    assert restored.said("delete.retention.ms")
    assert restored.rows() == world.commits


@pytest.mark.parametrize("by", ["version", "Spark's time"])
def test_rows_that_somebody_set_back_by_a_restore_of_delta_catch_up(
    world: ForgetfulJob, backup: Path, tmp_path: Path, by: str
) -> None:
    """Their version has another position in Kafka than the newest batch, and Spark does not write which version it is."""
    restored = RestoredJob(world, backup, tmp_path / "tables")
    restored.run()
    table = DeltaTable(restored.root / "partition_lag")
    before = table.version()
    world.commit("g2", 1, 9)
    world.commit("since", 0, 3)
    restored.run()

    table.update_incremental()
    table.restore(before)
    if by == "Spark's time":
        (commit,) = (restored.root / "partition_lag" / "_delta_log").glob(f"{table.version():020}.json")
        as_spark = {"version": None, "timestamp": "2026-11-28 06:42:10.196"}
        parameters = json.dumps({"version": str(before)}, separators=(",", ":"))
        assert parameters in commit.read_text()
        commit.write_text(commit.read_text().replace(parameters, json.dumps(as_spark)))
    restored.run()

    assert restored.rows() == world.commits
    assert restored.groups() == world.named


def publishing(world: ForgetfulJob) -> Config:
    # A plan is over before the next run: one that still holds is sent late, as it was written down.
    return world.config().model_copy(update={"plan": eager_plan(dry_run=False, valid_for_s=1)})


def publish(world: ForgetfulJob, generation: int) -> None:
    """One run, in which the plan of a group that was rebalanced is published."""
    busy, idle = member("busy", "t", assigned={"t": (0, 1)}), member("idle", "t")
    inject(
        world.bootstrap,
        [
            group_record(PLANNED, busy, idle, generation=generation),
            commit_record(PLANNED, "t", 0, generation),
        ],
    )
    world.commits[PLANNED, 0] = generation
    world.named.add(PLANNED)
    # Restored beside them, the tables are not those that publish.
    job = RunningJob(publishing(world), once=True, takes_over=isinstance(world, RestoredJob))
    job.start()
    job.join(300)
    assert job.failure is None


def published(world: ForgetfulJob) -> list[tuple[int, str]]:
    """Epochs and contents on the control topic, in its order."""
    return [(epoch, value) for group, epoch, value in control_records(world.bootstrap) if group == PLANNED]


def forget_published(world: ForgetfulJob) -> None:
    """Empty the control topic, as compaction does when a plan was withdrawn long ago."""
    admin = admin_client(world.bootstrap)
    policy = ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, CONTROL_TOPIC, incremental_configs=[policy])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result()
    for deleted in admin.delete_records([TopicPartition(CONTROL_TOPIC, 0, -1)]).values():
        deleted.result()


def test_restored_driver_uses_no_epoch_twice(world: ForgetfulJob, tmp_path: Path) -> None:
    publish(world, 1)
    list(back_up(Tables(str(world.root)), tmp_path / "copy"))
    publish(world, 2)
    publish(world, 3)
    restored = RestoredJob(world, tmp_path / "copy", tmp_path / "tables")

    publish(restored, 4)

    epochs = [epoch for epoch, _ in published(world)]
    assert len(epochs) == 4
    assert epochs == sorted(set(epochs))
    assert len({value for _, value in published(world)}) == 4
    decided = rows(str(restored.root), "recommendations", ("group_id", "epoch"))
    assert [epoch for group, epoch in decided if group == PLANNED and epoch] == [epochs[0], epochs[3]]

    before = dict(published(world))
    forget_published(world)
    again = RestoredJob(world, tmp_path / "copy", tmp_path / "again")
    publish(again, 5)

    ((epoch, _),) = published(world)
    assert epoch > max(before)
