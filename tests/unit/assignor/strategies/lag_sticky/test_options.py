import pytest

from assignor.errors import InvalidOptionError
from assignor.strategies.registry import strategy


def test_options_left_out_have_their_defaults() -> None:
    assert strategy("lag-sticky").check_options({"max_moves": 3, "floor_s": 5}) == {
        "max_moves": 3,
        "move_cost_s": 1.0,
        "floor_s": 5,
        "min_gain": 0.05,
        "move_pause_s": 6.0,
        "group_pause_s": 0.0,
        "count_cap": None,
        "counts": "free",
        "monotone": "no",
    }


def test_option_without_a_fixed_default_may_be_null() -> None:
    assert strategy("lag-sticky").check_options({"count_cap": None})["count_cap"] is None


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("max_moves", -1, r"must be a whole number from 0 to 10000000 \(partitions\), got -1"),
        ("max_moves", 1.5, "must be a whole number"),
        ("max_moves", True, "must be a whole number"),
        ("max_moves", 10**9, "must be a whole number"),
        ("move_cost_s", "1", r"must be a number from 0 to 86400 \(seconds\), got '1'"),
        ("move_cost_s", float("nan"), "must be a number"),
        ("move_cost_s", None, "must be a number"),
        ("min_gain", 1.01, r"must be a number from 0 to 1 \(share of the lag area\)"),
        ("count_cap", 0, "must be a whole number from 1 to"),
        ("counts", "odd", "must be one of free, even"),
        ("monotone", True, "must be one of no, yes"),
        ("floor", 1, "is unknown; known options are: max_moves, move_cost_s, floor_s"),
    ],
)
def test_value_out_of_range_is_refused(option: str, value: object, problem: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"lag-sticky: option '{option}' {problem}"):
        strategy("lag-sticky").check_options({option: value})
