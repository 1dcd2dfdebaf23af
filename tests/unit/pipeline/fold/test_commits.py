"""The stored state brought forward by one batch."""

from typing import Any

import pyarrow as pa
import pytest

from pipeline.fold.columns import BEHEADED
from pipeline.fold.control_messages import HANDED_OVER
from pipeline.fold.owners import held_partitions
from tests.support.job.folded import folded_commits
from tests.support.job.frames import arrow, member, shown


def commit(position: int, offset: int, **fields: Any) -> dict[str, Any]:
    row = {
        "row_kind": "commit",
        "position": position,
        "committed_offset": offset,
        "commit_timestamp_ms": 1000,
    }
    return row | fields


def tombstone(position: int, **fields: Any) -> dict[str, Any]:
    return {"row_kind": "tombstone", "position": position} | fields


def folded(
    stored: list[dict[str, Any]],
    batch: list[dict[str, Any]],
    groups: list[dict[str, Any]] | None = None,
    *,
    reread: tuple[int, ...] = (),
    behind: tuple[int, ...] = (),
    beheaded: tuple[int, ...] = (),
) -> list[tuple[Any, ...]]:
    result = folded_commits(stored, batch, groups or [], reread=reread, behind=behind, beheaded=beheaded)
    return shown(
        result, "group_id", "partition", "committed_offset", "commit_position", "has_new_commit", "confirmed"
    )


def test_commit_at_a_later_position_wins_even_with_a_lower_offset_and_an_earlier_clock() -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]

    assert folded(stored, [commit(8, 20, commit_timestamp_ms=1)]) == [("g", 0, 20, 8, True, True)]


def test_commit_at_an_earlier_position_never_moves_a_group_back() -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]

    assert folded(stored, [commit(6, 99)]) == [("g", 0, 50, 7, False, True)]


def test_last_of_several_commits_in_a_batch_counts() -> None:
    batch = [commit(9, 3), commit(11, 1), commit(10, 2), commit(4, 5, partition=1)]

    assert folded([], batch) == [("g", 0, 1, 11, True, True), ("g", 1, 5, 4, True, True)]


def test_tombstone_removes_the_row() -> None:
    stored = [
        {"committed_offset": 50, "commit_position": 7},
        {"partition": 1, "committed_offset": 5, "commit_position": 8},
    ]

    assert folded(stored, [tombstone(9)]) == [("g", 1, 5, 8, False, True)]


def test_tombstone_before_the_commit_that_stands_removes_nothing() -> None:
    assert folded([], [tombstone(9), commit(10, 4)]) == [("g", 0, 4, 10, True, True)]


def test_tombstone_of_a_partition_somebody_owns_leaves_it_without_a_commit() -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]
    groups = [{"members": [member("m", assigned={"t": [0]})]}]

    assert folded(stored, [tombstone(9)], groups) == [("g", 0, None, 9, False, True)]


def test_owned_partition_without_a_commit_has_a_row() -> None:
    groups = [{"members": [member("m", assigned={"t": [1]})]}]

    assert folded([], [], groups) == [("g", 1, None, None, False, True)]


def test_group_that_moved_to_another_offsets_partition_goes_on_from_its_positions_there() -> None:
    stored = [{"committed_offset": 50, "commit_position": 700, "offsets_partition": 1}]

    assert folded(stored, [commit(3, 51, offsets_partition=2)]) == [("g", 0, 51, 3, True, True)]


def test_rows_that_a_reading_from_the_start_has_not_met_are_dropped_at_its_end() -> None:
    stored = [
        {"committed_offset": 50, "commit_position": 7, "confirmed": False},
        {"partition": 1, "committed_offset": 5, "commit_position": 8, "confirmed": True},
    ]

    assert folded(stored, [], behind=(3,)) == [
        ("g", 0, 50, 7, False, False),
        ("g", 1, 5, 8, False, True),
    ]
    assert folded(stored, []) == [("g", 1, 5, 8, False, True)]


OLD = {"committed_offset": 50, "commit_position": 7, "confirmed": False, "unconfirmed_reason": "cut"}


def answer(offset: int | None, **fields: Any) -> dict[str, Any]:
    kind = "answer_none" if offset is None else "answer"
    return {"row_kind": kind, "committed_offset": offset, "offsets_partition": None} | fields


def reasons(stored: list[dict[str, Any]], batch: list[dict[str, Any]], **more: Any) -> list[str | None]:
    found: list[str | None] = folded_commits(stored, batch, [], **more)["unconfirmed_reason"].to_pylist()
    return found


def test_rows_that_a_log_without_its_beginning_does_not_hold_stay_with_the_reason() -> None:
    stored = [
        {"committed_offset": 50, "commit_position": 7},
        {"partition": 1, "committed_offset": 5, "commit_position": 8},
        {"partition": 2, "committed_offset": 6, "commit_position": 9, "offsets_partition": 4},
    ]
    met = [commit(90, 55)]

    assert folded(stored, met, reread=(3,), beheaded=(3,)) == [
        ("g", 0, 55, 90, True, True),
        ("g", 1, 5, 8, False, False),
        ("g", 2, 6, 9, False, True),
    ]
    assert reasons(stored, met, reread=(3,), beheaded=(3,)) == [None, BEHEADED, None]


def test_row_kept_without_its_record_stays_until_a_record_comes() -> None:
    assert folded([OLD], []) == [("g", 0, 50, 7, False, False)]
    assert reasons([OLD], []) == ["cut"]
    assert folded([OLD], [commit(90, 51)]) == [("g", 0, 51, 90, True, True)]
    assert folded([OLD], [tombstone(90)]) == []


def test_row_kept_without_its_record_goes_when_the_whole_log_is_read_and_does_not_hold_it() -> None:
    assert folded([OLD], [], reread=(3,)) == []


def test_broker_that_names_the_same_offset_confirms_the_commit_as_it_was() -> None:
    assert folded([OLD], [answer(50)]) == [("g", 0, 50, 7, False, True)]
    assert reasons([OLD], [answer(50)]) == [None]


def test_broker_that_names_another_offset_is_right_and_later_records_still_count() -> None:
    assert folded([OLD], [answer(60)]) == [("g", 0, 60, 7, False, True)]
    told = {"committed_offset": 60, "commit_position": 7}
    assert folded([told], [commit(8, 70)]) == [("g", 0, 70, 8, True, True)]


def test_broker_that_has_no_commit_removes_the_row() -> None:
    assert folded([OLD], [answer(None)]) == []


def test_broker_that_names_a_commit_nobody_read_makes_a_row() -> None:
    assert folded([], [answer(60)]) == [("g", 0, 60, None, False, True)]
    assert folded([], [answer(None)]) == []


@pytest.mark.parametrize("offset", [60, None])
def test_answer_about_a_commit_that_was_read_changes_nothing(offset: int | None) -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]

    assert folded(stored, [answer(offset)]) == [("g", 0, 50, 7, False, True)]


def test_partition_read_from_its_start_confirms_the_commits_that_it_meets() -> None:
    stored = [
        {"committed_offset": 50, "commit_position": 7},
        {"partition": 1, "committed_offset": 5, "commit_position": 8},
        {"partition": 2, "committed_offset": 6, "commit_position": 9, "offsets_partition": 4},
    ]

    rows = folded(stored, [commit(7, 50)], reread=(3,), behind=(3,))

    assert rows == [
        ("g", 0, 50, 7, True, True),
        ("g", 1, 5, 8, False, False),
        ("g", 2, 6, 9, False, True),
    ]


def test_log_made_again_counts_from_its_own_positions() -> None:
    stored = [{"committed_offset": 50, "commit_position": 700}]

    assert folded(stored, [commit(2, 20)], reread=(3,)) == [("g", 0, 20, 2, True, True)]


def test_first_record_of_a_later_batch_counts_while_its_row_is_not_met_yet() -> None:
    stored = [{"committed_offset": 50, "commit_position": 700, "confirmed": False}]

    assert folded(stored, [commit(2, 20)], behind=(3,)) == [("g", 0, 20, 2, True, True)]


def test_tombstone_met_while_reading_from_the_start_removes_the_row() -> None:
    stored = [{"committed_offset": 50, "commit_position": 700}]

    assert folded(stored, [tombstone(2)], reread=(3,), behind=(3,)) == []


def test_row_of_which_nobody_knows_the_partition_has_to_be_met_before_everything_is_read() -> None:
    stored = [{"committed_offset": 50, "commit_position": None, "offsets_partition": None}]
    unmet = [one | {"confirmed": False} for one in stored]

    assert folded(stored, [], reread=(3,), behind=(3,)) == [("g", 0, 50, None, False, False)]
    assert folded(unmet, [], behind=(4,)) == [("g", 0, 50, None, False, False)]
    assert folded(unmet, [commit(2, 20)], behind=(4,)) == [("g", 0, 20, 2, True, True)]
    assert folded(unmet, []) == []


@pytest.mark.parametrize(
    ("stored", "reread", "is_reread"),
    [
        pytest.param([{"committed_offset": 50, "commit_position": 7}], (), False, id="goes on"),
        pytest.param([{"committed_offset": 50, "commit_position": 700}], (3,), True, id="from the start"),
        pytest.param(
            [{"committed_offset": 50, "commit_position": 700, "confirmed": False}],
            (),
            True,
            id="from the start, batches ago",
        ),
        pytest.param([{"committed_offset": 50, "commit_position": 7}], (4,), False, id="another partition"),
    ],
)
def test_commit_that_may_be_older_than_the_known_one_is_told(
    stored: list[dict[str, Any]], reread: tuple[int, ...], is_reread: bool
) -> None:
    result = folded_commits(stored, [commit(8, 51)], [], reread=reread)

    assert shown(result, "committed_offset", "is_reread") == [(51, is_reread)]


def test_partition_given_to_two_members_has_one_row() -> None:
    groups = [
        {"generation": 4, "members": [member("b", assigned={"t": [0]}), member("a", assigned={"t": [0]})]}
    ]

    held = held_partitions(arrow("consumer_groups", *groups), HANDED_OVER.empty_table(), pa.array(["t"]))

    assert shown(held, "partition", "member_id", "generation") == [(0, "a", 4)]


def test_commit_that_a_reading_from_the_start_has_not_met_goes_and_its_owner_stays() -> None:
    stored = [{"committed_offset": 50, "commit_position": 7}]
    owner = [{"generation": 3, "members": [member("m", assigned={"t": [0]})]}]

    assert folded(stored, [], owner, reread=(3,), behind=(3,)) == [("g", 0, 50, 7, False, False)]
    assert folded(stored, [], owner, reread=(3,)) == [("g", 0, None, None, False, True)]
