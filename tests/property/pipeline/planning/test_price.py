"""Lives of a member that takes a partition over: the price is what its commits show that it read less."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.planning.effect import price
from pipeline.planning.state import FRESH, GroupState
from tests.support.planning.facts import NOW_MS
from tests.unit.pipeline.planning.test_price import AFTER, BEFORE, TO_B, case_of

_EVERY_S = 60
_SPEED = 1_000.0


def life(*, kept: float, moved: float, slow_s: int, speed: float) -> tuple[GroupState, float]:
    """The state after b has caught up again, and the seconds of arrivals that it read less than it receives.

    Args:
        kept: Records/s that arrive in each of the two partitions which b has, and reads in time.
        moved: Records/s that arrive in the one that it is given.
        slow_s: How long it reads that one slowly.
        speed: Records/s that it reads of it until then.
    """
    arriving = [100.0, moved, kept, kept]
    state = price.with_takers(FRESH, case_of(BEFORE, arriving=arriving).seen, TO_B, now_ms=NOW_MS)
    behind = lost = 0.0
    for now_s in range(_EVERY_S, 900, _EVERY_S):
        is_slow = now_s <= slow_s
        read = speed if is_slow else min(_SPEED - 2 * kept, moved + behind / _EVERY_S)
        behind = max(behind + (moved - read) * _EVERY_S, 0.0)
        lost += (moved - read) * _EVERY_S if is_slow else 0.0
        case = case_of(AFTER, behind=round(behind), drained=read, arriving=arriving, after_s=now_s)
        state = price.with_price(state, case)
    return state, lost / moved


@settings(max_examples=150, deadline=None)
@given(
    kept=st.floats(50, 150),
    moved=st.floats(80, 200),
    slow_s=st.sampled_from([60, 120, 180, 240, 300]),
    share=st.floats(0.0, 0.95),
)
def test_price_lies_between_what_was_not_read_and_what_could_have_been(
    kept: float, moved: float, slow_s: int, share: float
) -> None:
    state, lost_s = life(kept=kept, moved=moved, slow_s=slow_s, speed=share * moved)
    found_s = price.price_s_of(state, now_ms=NOW_MS + 900_000)
    seen_from = 5 * (moved + 2 * kept)

    if lost_s * moved <= seen_from + 1:
        return
    if found_s == 0:
        # It had fallen behind by more than clocks differ only in the decision after which it was watched no more.
        assert (1 - share) * moved * price._WATCHED_MS / 1000 <= seen_from + 1
        return
    most_s = slow_s * (_SPEED - 2 * kept - share * moved) / moved
    assert lost_s * 0.99 <= found_s <= most_s * 1.01


@settings(max_examples=100, deadline=None)
@given(kept=st.floats(50, 150), moved=st.floats(80, 200), slow_s=st.integers(0, 900))
def test_member_that_reads_what_arrives_shows_no_price_and_makes_no_plan_wait(
    kept: float, moved: float, slow_s: int
) -> None:
    state, _ = life(kept=kept, moved=moved, slow_s=slow_s, speed=moved)

    assert price.price_s_of(state, now_ms=NOW_MS + 900_000) == 0
    assert price.why_waits(state, case_of(BEFORE, giver_behind=9_000, after_s=900), TO_B) is None


def test_member_that_stays_slow_shows_no_price() -> None:
    state, lost_s = life(kept=100.0, moved=100.0, slow_s=900, speed=20.0)

    assert lost_s == pytest.approx(14 * 60 * 0.8)
    assert price.price_s_of(state, now_ms=NOW_MS + 900_000) == 0
