"""A start on a checkpoint that is not the tables' own: an earlier version's, an older one, another cluster's; nothing is lost or read twice."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job.forgetting import ForgetfulJob, forgetful_job

READ_AGAIN = "read again from its start"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForgetfulJob]:
    with forgetful_job(tmp_path_factory.mktemp("upgrade") / "tables") as made:
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
    world.run()
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
    world.run()
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
    world.run()
    cut_short(world.root / "_checkpoint" / "batches", cluster_id="elsewhere")
    world.commit("g5", 1, 66)

    world.run()

    assert world.rows() == world.commits
    assert world.said("it was chosen for Kafka cluster elsewhere, and this is")
    assert not world.said(READ_AGAIN)
