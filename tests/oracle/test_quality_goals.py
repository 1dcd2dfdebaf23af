"""What `lag-sticky` is held to, on few groups and a quarter of an hour of each of four workloads.

The whole measurement is that of tests/benchmarks/quality.py.
"""

import statistics
from functools import cache

import numpy as np

from tests.benchmarks.quality_policies import KIP_169_EVERY_MINUTE, LAG_STICKY, Policy
from tests.benchmarks.quality_still import BEST, Tally, compare, pooled, worse_than_rivals
from tests.benchmarks.quality_world import Outcome, World
from tests.benchmarks.workloads import FEW, FRAME_S

_QUARTER_OF_AN_HOUR = 900 // FRAME_S


@cache
def one_group_of_each_kind() -> dict[str, Tally]:
    return pooled(compare(groups=1))


def outcomes(policy: Policy) -> list[Outcome]:
    films = [generator(np.random.default_rng(0), _QUARTER_OF_AN_HOUR) for generator in FEW]
    return [World(film, policy, 0).run() for film in films]


def test_free_to_move_it_drains_at_most_a_twentieth_later_than_the_bound() -> None:
    ratios = one_group_of_each_kind()[BEST].ratios

    assert statistics.median(ratios) <= 1.05
    assert min(ratios) >= 1 - 1e-9


def test_free_to_move_no_rival_drains_a_group_sooner() -> None:
    worse = worse_than_rivals(one_group_of_each_kind())

    assert set(worse.values()) == {0}


def test_over_time_it_moves_a_hundredth_of_what_kip_169_does_every_minute_and_leaves_less_lag() -> None:
    ours, theirs = outcomes(LAG_STICKY), outcomes(KIP_169_EVERY_MINUTE)

    assert 0 < sum(one.moves for one in ours) <= sum(one.moves for one in theirs) / 100
    assert all(one.lag_seconds < other.lag_seconds for one, other in zip(ours, theirs, strict=True))
