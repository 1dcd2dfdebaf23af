"""One share is done on the driver, several by Spark's tasks; both come to the same rows."""

import os
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.decode.decoded import Decoded
from pipeline.decode.shares import rows_of_shares
from tests.support.frames import at, decoded_rows

MEMBER = {"member_id": "m", "topics": ["t"], "assigned": [("t", [0, 1])]}


def rows_of(number: int) -> list[dict[str, Any]]:
    """A row of each family for a number, with the process that made it, and columns of all sorts."""
    commit = {"row_kind": "commit", "position": number, "partition": number, "committed_offset": 7}
    group = {"row_kind": "group", "position": number, "group_id": f"g{number}", "members": [MEMBER]}
    log = {"row_kind": "log_offset", "partition": number, "log_end_offset": 9, "error": None}
    other = {"row_kind": "bad", "offset": number, "count": os.getpid(), "timestamp": at(number), "key": b"k"}
    return [commit, group, log, other]


def work(numbers: list[int]) -> Decoded:
    return decoded_rows(*(row for number in numbers for row in rows_of(number)))


def processes(rows: Decoded) -> set[int]:
    return set(rows.kind("bad")["count"].to_pylist())


@pytest.mark.parametrize("shares", [[], [[]], [[1, 2]]], ids=["none", "one without work", "one"])
def test_one_share_at_most_is_done_by_the_driver(spark: SparkSession, shares: list[list[int]]) -> None:
    rows = rows_of_shares(spark, work, shares)

    assert rows.kind("commit")["position"].to_pylist() == [number for share in shares for number in share]
    assert processes(rows) <= {os.getpid()}


def test_several_shares_are_done_by_tasks_and_come_to_the_same(spark: SparkSession) -> None:
    here, there = (rows_of_shares(spark, work, shares) for shares in ([[1, 2, 3]], [[1], [2, 3], []]))

    assert os.getpid() not in processes(there)
    for kind in ("commit", "group", "log_offset"):
        assert there.kind(kind).to_pylist() == here.kind(kind).to_pylist() != []
    assert there.kind("bad").drop("count").to_pylist() == here.kind("bad").drop("count").to_pylist()
