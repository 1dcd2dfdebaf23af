"""Who is decided about first, and who waits."""

import pyarrow as pa
import pytest

from pipeline.planning.rows.turns import decide_in_turn, most_in_need_first


def lags(*rows: tuple[str, int | None, float | None]) -> pa.Table:
    names, records, ages = zip(*rows, strict=True)
    return pa.table(
        {
            "group_id": pa.array(names, pa.string()),
            "lag": pa.array(records, pa.int64()),
            "lag_seconds": pa.array(ages, pa.float64()),
        }
    )


def test_the_oldest_unread_record_comes_first_then_the_most_records_then_the_name() -> None:
    stored = lags(
        *(("young", 900, 5.0), ("old", 1, 2.0), ("old", 0, 300.0), ("few", 10, 60.0), ("many", 11, 60.0)),
        *(("b", 3, 1.0), ("a", 3, 1.0), ("unknown", None, None), ("excluded", 9, 9e9)),
    )
    wanted = {"without commits", "unknown", "a", "b", "many", "few", "old", "young"}

    order = most_in_need_first(wanted, stored)

    assert order == ("old", "many", "few", "young", "a", "b", "unknown", "without commits")


@pytest.mark.parametrize(
    ("for_s", "decided", "left"),
    [
        (9, ["ab", "cd", "e"], ()),
        (2, ["ab", "cd"], ("e",)),
        (1, ["ab"], ("c", "d", "e")),
        (0, ["ab"], ("c", "d", "e")),
    ],
)
def test_groups_are_decided_about_while_there_is_time_and_the_first_always(
    for_s: float, decided: list[str], left: tuple[str, ...]
) -> None:
    now_s = 100.0

    def decide(groups: tuple[str, ...]) -> str:
        nonlocal now_s
        now_s += 1
        return "".join(groups)

    answer = decide_in_turn("abcde", decide, at_a_time=2, for_s=for_s, clock_s=lambda: now_s)

    assert answer == (decided, left)


def test_nobody_is_decided_about_when_it_is_nobodys_turn() -> None:
    assert decide_in_turn((), lambda _: 1 / 0, at_a_time=2, for_s=9, clock_s=lambda: 0) == ([], ())
