"""What one task does for its ranges of a table."""

import errno
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.arrow_stream import packed
from pipeline.errors import StorageRefusedError, StorageUnavailableError
from pipeline.row_ranges import Ranges
from pipeline.run.batch.in_tasks import added
from pipeline.run.tasks.folding import Fold, FoldingTask
from pipeline.tables.reading import Tables
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import arrow

_ROWS = 10_000


def test_rows_of_a_range_are_let_go_before_the_next_one_is_folded(tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    one = arrow("partition_lag", {})
    held: list[int] = []

    def fold(_tables: Tables, _new: pa.Table, _where: pc.Expression | None) -> pa.Table:
        held.append(pa.total_allocated_bytes())
        return one.take(pa.array([0] * _ROWS))

    ranges = Ranges(column="group_id", starts=("m",))
    task = _task(tmp_path, fold, ranges)
    share = pa.record_batch(
        {"number": pa.array([0, 1], pa.int32()), "new": pa.array([packed(one)] * 2, pa.binary())}
    )

    files = [name for batch in task([share]) for name in batch["file"].to_pylist()]

    assert len(files) == 2
    assert held[1] - held[0] < one.take(pa.array([0] * _ROWS)).nbytes / 2


def test_storage_that_takes_no_file_fails_the_batch_and_no_task(tmp_path: Path) -> None:
    def fold(_tables: Tables, _new: pa.Table, _where: pc.Expression | None) -> pa.Table:
        raise OSError(errno.EROFS, "Read-only file system")

    answers = pa.Table.from_batches(_task(tmp_path, fold)([_share()]))

    assert answers["file"].to_pylist() == [None]
    with pytest.raises(StorageUnavailableError, match="Read-only file system"):
        added(answers)


def test_store_that_refuses_a_task_its_file_is_told_apart_from_one_that_is_away(tmp_path: Path) -> None:
    def fold(_tables: Tables, _new: pa.Table, _where: pc.Expression | None) -> pa.Table:
        raise OSError("AWS Error ACCESS_DENIED during PutObject operation: no")

    answers = pa.Table.from_batches(_task(tmp_path, fold)([_share()]))

    with pytest.raises(
        StorageRefusedError, match=r"^AWS Error ACCESS_DENIED during PutObject operation: no$"
    ):
        added(answers)


def test_any_other_failure_fails_the_task(tmp_path: Path) -> None:
    def fold(_tables: Tables, _new: pa.Table, _where: pc.Expression | None) -> pa.Table:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        list(_task(tmp_path, fold)([_share()]))


def _task(root: Path, fold: Fold, ranges: Ranges | None = None) -> FoldingTask:
    return FoldingTask(
        root=str(root),
        storage_options={},
        name="partition_lag",
        reads={},
        fold=fold,
        ranges=ranges or Ranges(column="group_id", starts=()),
    )


def _share() -> pa.RecordBatch:
    new = packed(arrow("partition_lag", {}))
    return pa.record_batch({"number": pa.array([0], pa.int32()), "new": pa.array([new], pa.binary())})
