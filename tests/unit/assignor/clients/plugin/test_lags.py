"""Lag as KIP-169 has it."""

import pytest

from assignor.clients.plugin.lags import lags_of

P = ("t", 0)


@pytest.mark.parametrize(
    ("committed", "from_latest", "lag"),
    [
        pytest.param({P: 40}, False, 60, id="a commit"),
        pytest.param({P: 5}, False, 90, id="a commit below the log start"),
        pytest.param({P: 120}, False, 0, id="a commit after the end was asked for"),
        pytest.param({}, False, 90, id="no commit, from the beginning"),
        pytest.param({}, True, 0, id="no commit, from the end"),
    ],
)
def test_lag_of_a_partition(committed: dict[tuple[str, int], int], from_latest: bool, lag: int) -> None:
    asked = lags_of(committed=committed, starts={P: 10}, ends={P: 100}, from_latest=from_latest)

    assert asked == {P: lag}


def test_partition_whose_log_is_not_known_has_no_lag() -> None:
    other = ("t", 1)

    assert lags_of(committed={other: 3}, starts={P: 0}, ends={P: 1, other: 9}, from_latest=False) == {P: 1}
