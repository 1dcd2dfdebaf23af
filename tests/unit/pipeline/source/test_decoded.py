"""Decoded rows in tables by family, collapsed, put together, and on their way from tasks."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pipeline.decode.rows import ARROW
from pipeline.source import decoded
from pipeline.source.decoded import Decoded, newest_of, of_rows, together
from tests.support.job.frames import decoded_arrow, decoded_rows


def commit(position: int, **fields: Any) -> dict[str, Any]:
    return {"row_kind": "commit", "position": position, "committed_offset": position * 10} | fields


def group(position: int, **fields: Any) -> dict[str, Any]:
    return {"row_kind": "group", "position": position, "group_type": "classic", "members": []} | fields


def ack(position: int, kind: str = "refused", id_: str = "a", **fields: Any) -> dict[str, Any]:
    return {"row_kind": "ack", "position": position, "ack": {"kind": kind, "id": id_}} | fields


ACK = ack(3)


def test_rows_have_only_the_columns_that_their_kind_fills() -> None:
    rows = decoded_rows(commit(1), group(2), ACK)

    assert rows.kind("commit").num_columns == 10
    assert rows.kind("commit", "tombstone").to_pylist()[0]["committed_offset"] == 10
    assert "members" in rows.kind("group").column_names
    assert rows.kind("ack")["position"].to_pylist() == [3]
    assert rows.kind("orders").num_rows == 0


def test_newest_commit_of_a_partition_stays_and_a_tombstone_counts_as_one() -> None:
    rows = decoded_rows(commit(5), commit(4), commit(7, partition=1), commit(8, partition=1), ACK)
    gone = decoded_rows(commit(5), {"row_kind": "tombstone", "position": 6})

    assert rows.newest().kind("commit", "tombstone")["position"].to_pylist() == [5, 8]
    assert gone.newest().kind("commit", "tombstone")["row_kind"].to_pylist() == ["tombstone"]
    assert rows.newest().kind("ack").num_rows == 1


def test_newest_acknowledgement_of_each_kind_and_id_of_a_group_stays_also_if_it_takes_one_back() -> None:
    rows = decoded_rows(
        ack(1), ack(9), ack(4), ack(2, "void"), ack(3, id_="b"), ack(5, group_id="h"), {"row_kind": "orders"}
    )

    left = rows.newest()

    assert left.kind("ack")["position"].to_pylist() == [9, 2, 3, 5]
    assert left.kind("orders").num_rows == 1


def test_newest_record_of_each_type_of_a_group_stays() -> None:
    rows = decoded_rows(group(5), group(9), group(6, group_type="consumer"), group(1, group_id="h"))

    left = rows.newest().kind("group", "group_tombstone")

    assert sorted(left["position"].to_pylist()) == [1, 6, 9]


def test_newest_record_of_each_key_of_a_kip_848_group_stays() -> None:
    record = {"row_kind": "group_record", "record_type": 8, "record_key": "a"}
    gone = record | {"row_kind": "group_record_tombstone"}
    rows = decoded_rows(
        record | {"position": 1, "value": b"x"},
        gone | {"position": 4},
        record | {"position": 2, "record_key": "b"},
        record | {"position": 3, "record_type": 5},
    )

    left = rows.newest().kind("group_record", "group_record_tombstone")

    assert sorted(left["position"].to_pylist()) == [2, 3, 4]


@pytest.mark.parametrize("parts", [(), ((),), ((commit(1), ACK), (), (group(2), commit(3)))])
def test_parts_are_put_together_also_on_their_way_through_spark(
    parts: tuple[tuple[dict[str, Any], ...], ...],
) -> None:
    each = [decoded_rows(*rows) for rows in parts]
    collected = pa.Table.from_batches([batch for part in each for batch in part.rows()], ARROW)

    whole, found = together(each), of_rows(collected)

    assert [one.to_pylist() for one in found.tables] == [one.to_pylist() for one in whole.tables]
    assert sum(one.num_rows for one in whole.tables) == sum(len(rows) for rows in parts)


def test_newest_of_many_rows_are_those_of_all_and_hardly_more_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [commit(position, partition=position % 7) for position in range(100)] + [ACK, group(3), group(4)]
    held: list[int] = []
    collapse = Decoded.newest

    def counted(self: Decoded) -> Decoded:
        held.append(self.n_rows())
        return collapse(self)

    monkeypatch.setattr(decoded, "_WAITING", 10)
    monkeypatch.setattr(Decoded, "newest", counted)

    found = newest_of(batch for row in rows for batch in decoded_arrow(row).to_batches())

    assert [one.to_pylist() for one in found.tables] == [
        one.to_pylist() for one in collapse(decoded_rows(*rows)).tables
    ]
    assert len(held) > 5
    assert max(held) <= 7 + 10


def test_rows_that_wait_are_held_without_the_columns_of_other_kinds() -> None:
    wide = decoded_arrow(*[commit(position) for position in range(1000)]).to_batches()[0]
    before, held = pa.total_allocated_bytes(), 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal held
        for _ in range(20):
            yield pa.RecordBatch.from_arrays(
                [pa.concat_arrays([column]) for column in wide.columns], schema=wide.schema
            )
        held = pa.total_allocated_bytes() - before

    newest_of(batches())

    assert held < 20 * wide.nbytes / 2


def test_of_log_ends_that_several_tasks_have_asked_for_the_newest_answer_counts() -> None:
    def end(partition: int, at_ms: int, end: int | None, **fields: Any) -> dict[str, Any]:
        told = {"row_kind": "log_offset", "partition": partition, "observed_at_ms": at_ms}
        return told | {"log_end_offset": end} | fields

    silent = end(1, 9, None, error="silent")
    rows = decoded_rows(end(0, 5, 10), end(1, 4, 7), end(0, 3, 8), silent, end(2, 1, 1), commit(4))

    found = rows.newest_log_ends()

    ends = found.kind("log_offset").to_pylist()
    assert {row["partition"]: row["log_end_offset"] for row in ends} == {0: 10, 1: 7, 2: 1}
    assert (len(ends), found.kind("commit").num_rows) == (3, 1)
