import pytest

from pipeline.lag.lag import OffsetReset, assignor_lag, lag, raw_lag
from tests.support.job.measures import ints, plain


@pytest.mark.parametrize(
    ("committed", "log_start", "log_end", "expected"),
    [
        pytest.param(30, 0, 100, 70, id="behind"),
        pytest.param(100, 0, 100, 0, id="at the end"),
        pytest.param(0, 0, 0, 0, id="empty log"),
        pytest.param(130, 0, 100, 0, id="commit beyond the log end"),
        pytest.param(30, 40, 100, 60, id="commit below the log start"),
        pytest.param(30, 100, 100, 0, id="everything deleted"),
        pytest.param(30, None, 100, 70, id="unknown log start sets no floor"),
        pytest.param(None, 0, 100, None, id="no commit"),
        pytest.param(30, 0, None, None, id="unknown log end"),
        pytest.param(None, None, None, None, id="nothing known"),
        pytest.param(2**63 - 1, 0, 0, 0, id="largest offset"),
    ],
)
def test_lag_is_what_can_still_be_read(
    committed: int | None, log_start: int | None, log_end: int | None, expected: int | None
) -> None:
    actual = lag(ints([committed]), ints([log_start]), ints([log_end]))

    assert plain(actual) == [expected]


@pytest.mark.parametrize(
    ("committed", "log_end", "expected"),
    [
        pytest.param(30, 100, 70, id="behind"),
        pytest.param(130, 100, -30, id="commit beyond the log end is negative"),
        pytest.param(2**63 - 1, 0, -(2**63 - 1), id="largest offset is not unknown"),
        pytest.param(None, 100, None, id="no commit"),
        pytest.param(30, None, None, id="unknown log end"),
    ],
)
def test_raw_lag_is_the_plain_difference(
    committed: int | None, log_end: int | None, expected: int | None
) -> None:
    actual = raw_lag(ints([committed]), ints([log_end]))

    assert plain(actual) == [expected]


@pytest.mark.parametrize(
    ("committed", "log_start", "log_end", "reset", "expected"),
    [
        pytest.param(None, 40, 100, "latest", 0, id="no commit, latest: nothing to read"),
        pytest.param(None, None, 100, "latest", 0, id="no commit, latest, unknown log start"),
        pytest.param(None, 40, 100, "earliest", 60, id="no commit, earliest: the whole log"),
        pytest.param(None, 40, 100, "none", 60, id="no commit, none: the whole log"),
        pytest.param(None, None, 100, "earliest", None, id="whole log of unknown start"),
        pytest.param(None, 40, None, "latest", None, id="latest, unknown log end"),
        pytest.param(None, 40, None, "earliest", None, id="earliest, unknown log end"),
        pytest.param(30, 40, 100, "latest", 60, id="a commit counts whatever the reset"),
        pytest.param(130, 40, 100, "earliest", 0, id="commit beyond the log end"),
        pytest.param(50, 40, None, "latest", None, id="commit, unknown log end"),
    ],
)
def test_assignor_lag_follows_kip_169(
    committed: int | None,
    log_start: int | None,
    log_end: int | None,
    reset: OffsetReset,
    expected: int | None,
) -> None:
    actual = assignor_lag(ints([committed]), ints([log_start]), ints([log_end]), reset)

    assert plain(actual) == [expected]
