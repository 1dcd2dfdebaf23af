import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lag.rates import arrival_rate, drain_rate
from tests.support.job.measures import ints

steps = st.lists(
    st.tuples(
        st.none() | st.integers(-50, 1000) | st.integers(-(2**40), 2**40),
        st.none() | st.integers(-100, 10**7),
    ),
    max_size=20,
)


def plain_rate(
    steps: list[tuple[int | None, int | None]], half_life_ms: int, *, restarts: bool
) -> float | None:
    rate: float | None = None
    for records, duration_ms in steps:
        if restarts and records is not None and records < 0:
            rate = None
        elif records is not None and records >= 0 and duration_ms is not None and duration_ms > 0:
            raw = records / duration_ms * 1000
            weight = 0.5 ** (duration_ms / half_life_ms)
            rate = raw if rate is None else rate * weight + raw * (1 - weight)
    return rate


@pytest.mark.parametrize(
    "restarts", [pytest.param(True, id="arrival_rate"), pytest.param(False, id="drain_rate")]
)
@given(steps=steps, half_life_ms=st.integers(1, 10**7))
@settings(deadline=None)
def test_rate_equals_the_plain_rule_and_is_never_negative(
    *, restarts: bool, steps: list[tuple[int | None, int | None]], half_life_ms: int
) -> None:
    rate = np.array([np.nan])
    for records, duration_ms in steps:
        step = arrival_rate if restarts else drain_rate
        rate = step(rate, ints([records]), ints([duration_ms]), half_life_ms)

    expected = plain_rate(steps, half_life_ms, restarts=restarts)
    if expected is None:
        assert math.isnan(rate[0])
    else:
        assert rate[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert rate[0] >= 0
