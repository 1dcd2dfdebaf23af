"""One verdict per group: the worst that holds, and nothing that its figures do not tell."""

from typing import Any

import pytest

from pipeline.operate.serve.views.verdict import verdict

_WELL: dict[str, Any] = {
    "partitions": 6,
    "lag": 120,
    "unknown_lag": 0,
    "old_lag": 0,
    "lag_seconds": 0.4,
    "lag_seconds_is_lower_bound": False,
    "growing": 0,
    "statuses": {"OK": 6},
    "member_count": 2,
    "members_stuck": None,
    "capacity_ratio": None,
    "arrival_rate": 300.0,
    "drain_rate": 300.0,
}


@pytest.mark.parametrize(
    ("figures", "level", "words"),
    [
        ({}, "good", "keeps up"),
        # Every backlog of some seconds grows and shrinks.
        ({"growing": 3}, "good", "keeps up"),
        ({"growing": 6, "lag_seconds": 30.0}, "fair", "falling behind"),
        ({"lag_seconds": 30.0, "drain_rate": 500.0}, "fair", "catching up"),
        ({"lag_seconds": 30.0}, "fair", "behind"),
        ({"lag_seconds": 30.0, "drain_rate": None}, "fair", "behind"),
        ({"capacity_ratio": 1.3, "growing": 6, "lag_seconds": 30.0}, "bad", "overloaded"),
        ({"capacity_ratio": 1.3}, "good", "keeps up"),
        ({"statuses": {"STALL": 1, "OK": 5}}, "bad", "stuck"),
        ({"statuses": {"STOP": 6}, "growing": 6, "lag_seconds": 900.0}, "bad", "stuck"),
        ({"statuses": {"EXPIRED": 1, "STALL": 5}}, "bad", "loses records"),
        ({"members_stuck": 1}, "bad", "does not rebalance"),
        ({"members_stuck": 0}, "good", "keeps up"),
        ({"member_count": 0}, "bad", "nobody reads it"),
        ({"member_count": 0, "lag": 0}, "good", "keeps up"),
        # Members of a KIP-848 group are not known; that is not none.
        ({"member_count": None}, "good", "keeps up"),
        ({"lag": None, "lag_seconds": None, "unknown_lag": 6}, "none", "not known"),
        ({"lag_seconds": None}, "none", "not known"),
        # When a stream has just begun, hours of lag are older than all that it has seen.
        ({"lag_seconds_is_lower_bound": True}, "none", "not known"),
        ({"lag_seconds_is_lower_bound": True, "lag_seconds": 30.0}, "fair", "behind"),
        ({"partitions": 0, "lag": None, "lag_seconds": None}, "none", "no commits"),
    ],
)
def test_the_worst_that_holds_is_the_verdict(figures: dict[str, Any], level: str, words: str) -> None:
    assert verdict({**_WELL, **figures})[:2] == (level, words)


@pytest.mark.parametrize("doubt", [{"unknown_lag": 1}, {"old_lag": 1}])
def test_nobody_keeps_up_of_whom_a_part_is_unknown_or_old(doubt: dict[str, int]) -> None:
    assert verdict({**_WELL, **doubt}) == (
        "none",
        "not known",
        "the lag of 1 of 6 partitions is unknown or old",
    )


def test_age_that_may_be_more_is_told_with_the_partitions_that_are_old() -> None:
    found = verdict({**_WELL, "lag_seconds": 0.0, "lag_seconds_is_lower_bound": True, "old_lag": 6})

    assert found == (
        "none",
        "not known",
        "the oldest record waits at least 0 s; the lag of 6 of 6 partitions is unknown or old",
    )


def test_trouble_is_trouble_whatever_is_unknown_beside_it() -> None:
    found = verdict({**_WELL, "statuses": {"STOP": 2, "UNKNOWN": 1}, "unknown_lag": 1})

    assert found[:2] == ("bad", "stuck")
    assert found.why == "2 of 6 partitions stand still; the lag of 1 of 6 partitions is unknown or old"
