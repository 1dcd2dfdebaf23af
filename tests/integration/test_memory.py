"""What a run goes on from: tables or checkpoint lost, restored, of another moment, version or cluster; tombstones compacted away.

All is right after one run, and nothing is lost or read twice. Each test leaves tables and a checkpoint that fit. The
last one makes the broker forget tombstones at once, and from then on every run reads all again.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.inject import offsets_partition
from tests.support.job.forgetting import ForgetfulJob, forgetful_job

READ_AGAIN = "read again from its start"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForgetfulJob]:
    with forgetful_job(tmp_path_factory.mktemp("memory") / "tables") as made:
        yield made


def as_it_was(checkpoint: Path, *, is_cut_short: bool) -> None:
    """Make a checkpoint say what it said then, when its offset was the time, with its last batch at its end or not."""
    committed = {file.name for file in (checkpoint / "commits").glob("[0-9]*")}
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        *others, _offset = file.read_text(encoding="utf-8").splitlines()
        file.write_text("\n".join([*others, '{"tick": 1795360500001}']), encoding="utf-8")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        if file.name not in committed:
            # A stop comes when the next batch has begun.
            file.unlink()
    if is_cut_short:
        (checkpoint / "commits" / max(committed, key=int)).unlink()


@pytest.mark.parametrize("is_cut_short", [False, True], ids=["whole", "last batch cut short"])
def test_job_goes_on_where_the_earlier_version_ended(world: ForgetfulJob, is_cut_short: bool) -> None:
    folder = world.root / "_checkpoint"
    shutil.rmtree(folder / "ticks", ignore_errors=True)
    (folder / "batches").rename(folder / "ticks")
    as_it_was(folder / "ticks", is_cut_short=is_cut_short)
    world.commit("g1", 1, 61 + is_cut_short)

    world.run()

    assert world.rows() == world.commits
    assert not world.said(READ_AGAIN)
    assert not world.said("failed")


def test_checkpoint_that_spark_cannot_read_is_set_aside_and_the_tables_go_on(world: ForgetfulJob) -> None:
    for file in (world.root / "_checkpoint" / "batches" / "offsets").glob("[0-9]*"):
        file.write_text("damaged", encoding="utf-8")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    world.commit("g2", 0, 63)

    world.run()

    assert world.said("Spark cannot continue from its checkpoint")
    assert world.rows() == world.commits
    assert not world.said(READ_AGAIN)


def test_checkpoint_of_the_earliest_version_is_gone_on_from(world: ForgetfulJob) -> None:
    as_it_was(world.root / "_checkpoint" / "batches", is_cut_short=False)
    world.commit("g2", 0, 63)

    world.run()

    assert world.rows() == world.commits
    assert not world.said(READ_AGAIN)


def cut_short(checkpoint: Path, **changed: str) -> None:
    """Make a checkpoint one whose newest finished batch did not finish, and was chosen with these fields."""
    committed = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(committed)).unlink()
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        if int(file.name) > committed:
            file.unlink()
    newest = checkpoint / "offsets" / str(committed)
    *others, offset = newest.read_text(encoding="utf-8").splitlines()
    newest.write_text("\n".join([*others, json.dumps(json.loads(offset) | changed)]), encoding="utf-8")
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def test_older_checkpoint_under_newer_tables_writes_nothing_and_is_named(world: ForgetfulJob) -> None:
    checkpoint, older = world.root / "_checkpoint", world.root.parent / "older"
    shutil.copytree(checkpoint, older)
    world.commit("g3", 1, 64)
    world.run()
    shutil.rmtree(checkpoint)
    older.rename(checkpoint)
    cut_short(checkpoint / "batches")
    world.commit("g4", 0, 65)

    world.run()

    assert world.rows() == world.commits
    assert world.said("is skipped")
    assert world.said("it was chosen from tables as of")
    assert not world.said(READ_AGAIN)


def test_checkpoint_of_another_cluster_writes_nothing_and_is_named(world: ForgetfulJob) -> None:
    cut_short(world.root / "_checkpoint" / "batches", cluster_id="elsewhere")
    world.commit("g5", 1, 66)

    world.run()

    assert world.rows() == world.commits
    assert world.said("it was chosen for Kafka cluster elsewhere, and this is")
    assert not world.said(READ_AGAIN)


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
