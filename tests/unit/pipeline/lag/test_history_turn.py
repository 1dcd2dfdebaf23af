"""When a partition has a row in the history, and what the rows say of the time between them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.lag.columns import from_floats
from pipeline.lag.history_turn import STEADY_S, HistoryTurn, history_turn
from pipeline.lag.lag import UNKNOWN
from pipeline.lag.settings import HistoryPace

PACE = HistoryPace(interval_ms=60_000, max_gap_ms=300_000)
KEEPS_UP: dict[str, Any] = {
    "group_id": "g",
    "status": "OK",
    "member_id": "a",
    "provisional": False,
    "lag": 40,
    "lag_seconds": 2.0,
    "lag_seconds_is_lower_bound": False,
}
BEHIND = KEEPS_UP | {"lag": 3_000, "lag_seconds": 300.0}
TYPES = {
    **dict.fromkeys(("group_id", "status", "member_id"), pa.string()),
    **dict.fromkeys(("provisional", "lag_seconds_is_lower_bound"), pa.bool_()),
    "lag": pa.int64(),
    "lag_seconds": pa.float64(),
}


def turns(rows: list[dict[str, Any]], last: HistoryTurn | None, *, now_ms: int) -> HistoryTurn:
    """Of some partitions, each with what it says."""
    nothing = [None] * len(rows)
    at = nothing if last is None else [None if one == UNKNOWN else one * 1000 for one in last.at_ms.tolist()]
    said = nothing if last is None else last.says.tolist()
    old = pa.StructArray.from_arrays(
        [pa.array(at, pa.timestamp("us", "UTC")), pa.array(said, pa.int64())], ["history_at", "history_hash"]
    )
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}
    return history_turn(old, columns, PACE, now_ms=now_ms)


def turn(row: dict[str, Any], last: HistoryTurn | None, *, now_ms: int) -> HistoryTurn:
    """Of one partition."""
    return turns([row], last, now_ms=now_ms)


def is_due(before: dict[str, Any], now: dict[str, Any], *, after_s: int = 60) -> bool:
    """Whether the second row follows the first one so soon."""
    first = turn(before, None, now_ms=1_000)
    now_ms = 1_000 + after_s * 1000
    return bool(turn(now, first, now_ms=now_ms).at_ms[0] == now_ms)


@pytest.mark.parametrize(
    "now",
    [
        {"lag": 0, "lag_seconds": 0.0},
        {"lag": 90_000, "lag_seconds": STEADY_S - 0.01},
    ],
)
def test_partition_that_keeps_up_has_nothing_new_to_say_until_the_gap_is_over(now: dict[str, Any]) -> None:
    assert not is_due(KEEPS_UP, KEEPS_UP | now, after_s=299)
    assert is_due(KEEPS_UP, KEEPS_UP | now, after_s=300)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (KEEPS_UP, {"status": "STALL"}),
        (KEEPS_UP, {"member_id": "b"}),
        (KEEPS_UP, {"member_id": None}),
        (KEEPS_UP, {"provisional": True}),
        (KEEPS_UP, {"lag_seconds": STEADY_S}),
        (KEEPS_UP, {"lag_seconds": None}),
        (KEEPS_UP, {"lag_seconds": None, "lag": None}),
        (BEHIND, {"lag_seconds": 9.0}),
        (BEHIND, {"lag_seconds": 331.0}),
        (BEHIND, {"lag_seconds": 269.0}),
        (BEHIND, {"lag": 3_301}),
        (BEHIND, {"lag": 0}),
        (BEHIND, {"lag_seconds_is_lower_bound": True}),
        (KEEPS_UP | {"lag_seconds": None}, {"lag": 41}),
    ],
)
def test_change_has_a_row_after_the_interval(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert is_due(before, before | now)
    assert not is_due(before, before | now, after_s=59)


def test_partitions_of_a_group_have_their_rows_together() -> None:
    other = KEEPS_UP | {"group_id": "h"}
    first = turns([KEEPS_UP, KEEPS_UP, other], None, now_ms=0)
    second = turns([KEEPS_UP, BEHIND, other], first, now_ms=60_000)
    third = turns([KEEPS_UP, BEHIND, other], second, now_ms=120_000)

    assert second.at_ms.tolist() == [60_000, 60_000, 0]
    assert third.at_ms.tolist() == [60_000, 60_000, 0]


def test_partition_that_is_new_in_its_group_has_a_row_at_once_and_the_others_when_they_have_had_time() -> (
    None
):
    seen = HistoryTurn(at_ms=np.array([0, 50_000, UNKNOWN]), says=turns([KEEPS_UP] * 3, None, now_ms=0).says)

    assert turns([KEEPS_UP] * 3, seen, now_ms=60_000).at_ms.tolist() == [60_000, 50_000, 60_000]


def test_a_row_says_what_lag_was_until_the_next_one() -> None:
    rng = np.random.default_rng(5)
    age_s, last, shown, rows = 5.0, None, KEEPS_UP, 0
    for tick in range(3_000):
        # Calm for hours, with bursts and falls.
        age_s = max(0.0, age_s * np.exp(rng.normal(0, 0.02)) + (rng.random() < 0.01) * rng.normal(0, 300))
        now_ms, row = tick * 30_000, KEEPS_UP | {"lag_seconds": age_s, "lag": round(age_s * 1000)}
        after = turn(row, last, now_ms=now_ms)
        if after.at_ms[0] == now_ms:
            shown, rows = row, rows + 1
        if now_ms - after.at_ms[0] >= PACE.interval_ms:
            both_steady = max(age_s, shown["lag_seconds"]) < STEADY_S
            assert both_steady or 1 / 1.1 < age_s / shown["lag_seconds"] < 1.1
        last = after
    assert 300 <= rows < 1_500


def test_rates_and_ages_are_right_to_a_millionth() -> None:
    values = np.array([0.0, 1.0, 5.0, 1e-3, 2 / 3, 123_456.789, 1e300, np.finfo(np.float64).tiny])

    stored = from_floats(values).to_numpy()

    assert stored[:3].tolist() == [0.0, 1.0, 5.0]
    assert np.all(np.abs(stored - values) <= 5e-7 * values)
    assert from_floats(np.array([np.nan])).null_count == 1
