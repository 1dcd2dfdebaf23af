"""One share is done on the driver, several by Spark's tasks; both come to the same rows."""

import os
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.decode.shares import Decoded, as_frame, rows_of_shares, together
from pipeline.decode.step import rows_of
from tests.support.frames import at


def work(numbers: list[int]) -> Iterator[pa.RecordBatch]:
    """A row for each number, with the process that made it, and columns of all sorts."""
    member = {"member_id": "m", "assignments": [{"topic": "t", "partitions": [0, 1]}]}
    for number in numbers:
        yield rows_of(
            [
                {
                    "row_kind": "group",
                    "position": number,
                    "count": os.getpid(),
                    "timestamp": at(number),
                    "key": b"k",
                    "members": [member],
                }
            ]
        )


def on_driver(rows: Decoded) -> pa.Table:
    return rows.toArrow() if isinstance(rows, DataFrame) else rows


def processes(rows: Decoded) -> set[int]:
    return set(on_driver(rows)["count"].to_pylist())


def positions(rows: Decoded) -> list[int]:
    return sorted(on_driver(rows)["position"].to_pylist())


@pytest.mark.parametrize("shares", [[], [[]], [[1, 2]]], ids=["none", "one without work", "one"])
def test_one_share_at_most_is_done_by_the_driver(spark: SparkSession, shares: list[list[int]]) -> None:
    rows = rows_of_shares(spark, work, shares)

    assert isinstance(rows, pa.Table)
    assert positions(rows) == [number for share in shares for number in share]
    assert processes(rows) <= {os.getpid()}


def test_several_shares_are_done_by_tasks(spark: SparkSession) -> None:
    rows = rows_of_shares(spark, work, [[1], [2, 3]])

    assert isinstance(rows, DataFrame)
    assert positions(rows) == [1, 2, 3]
    assert os.getpid() not in processes(rows)


@pytest.mark.parametrize("some", [[], [[1]], [[1], [2]]])
@pytest.mark.parametrize("others", [[], [[8]], [[8], [9]]])
def test_rows_are_put_together_wherever_they_are(
    spark: SparkSession, some: list[list[int]], others: list[list[int]]
) -> None:
    rows = together(spark, rows_of_shares(spark, work, some), rows_of_shares(spark, work, others))

    assert isinstance(rows, pa.Table) == (max(len(some), len(others)) <= 1)
    assert positions(rows) == [number for share in some + others for number in share]


def test_rows_of_the_driver_are_the_same_with_spark(spark: SparkSession) -> None:
    rows = rows_of_shares(spark, work, [[1, 2]])
    assert isinstance(rows, pa.Table)

    assert as_frame(spark, rows).toArrow().to_pylist() == rows.to_pylist()
