"""Lengths of time in words."""

import pytest

from pipeline.clock import duration


@pytest.mark.parametrize(
    ("length_ms", "said"),
    [
        (0, "0 ms"),
        (1, "1 ms"),
        (1_999, "1999 ms"),
        (2_000, "2.0 s"),
        (5_400, "5.4 s"),
        (119_900, "119.9 s"),
        (120_000, "2.0 min"),
        (7_199_000, "120.0 min"),
        (7_200_000, "2.0 h"),
        (86_400_000, "24.0 h"),
    ],
)
def test_length_is_told_in_the_largest_unit_of_which_it_has_two(length_ms: int, said: str) -> None:
    assert duration(length_ms) == said


def test_no_length_but_none_is_told_as_zero() -> None:
    lengths_ms = {
        base * 10**power + more for power in range(10) for base in range(1, 10) for more in (-1, 0, 1)
    }

    assert [ms for ms in lengths_ms - {0} if float(duration(ms).split()[0]) == 0] == []
