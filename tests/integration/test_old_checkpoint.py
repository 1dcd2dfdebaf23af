"""A start on the checkpoint of an earlier version, whose source was one in Python: nothing is lost, nothing read twice."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forgetting import ForgetfulJob, forgetful_job

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
        file.with_name(f".{file.name}.crc").unlink()
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
        file.with_name(f".{file.name}.crc").unlink()
    world.commit("g2", 0, 63)

    world.run()

    assert world.said("Spark cannot go on with its checkpoint")
    assert world.rows() == world.commits
    assert not world.said(READ_AGAIN)


def test_checkpoint_of_the_earliest_version_is_gone_on_from(world: ForgetfulJob) -> None:
    as_it_was(world.root / "_checkpoint" / "batches", is_cut_short=False)
    world.commit("g2", 0, 63)

    world.run()

    assert world.rows() == world.commits
    assert not world.said(READ_AGAIN)
