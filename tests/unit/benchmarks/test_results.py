from typing import Any

from tests.benchmarks.results import growth


def part(rows: int, whole_s: float, without_s: float) -> dict[str, Any]:
    return {"rows": rows, "whole_p50_s": whole_s, "without_plan_and_history_p50_s": without_s}


def test_growth_is_told_between_the_sizes_of_one_run_whatever_their_order() -> None:
    parts = {
        "rows-1m": part(1_000_000, 10.0, 4.0),
        "rows-10k": part(10_000, 0.5, 0.4),
        "partitions-10k": part(10_000, 9.0, 9.0),
        "rows-100k": part(100_000, 5.0, 0.4),
        "decode": {},
    }

    assert growth(parts) == [[10_000, 100_000, 1.0, 0.0], [100_000, 1_000_000, 0.3, 1.0]]


def test_one_size_alone_does_not_grow() -> None:
    assert growth({"rows-10k": part(10_000, 0.5, 0.4)}) == []
