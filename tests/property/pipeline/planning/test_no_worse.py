"""No plan is published that is worse by its own figures than doing nothing, whatever is pinned."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from assignor.strategies.registry import STRATEGIES
from pipeline.planning.values import Decision
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import Walk

_N = 12
_GROUPS = 25


def drawn(seed: int, strategy: str, **guards: object) -> tuple[Walk, tuple[int, ...]]:
    """A group of three members that all have a backlog, and a fifth of its partitions to pin."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, 3, _N)
    walk = Walk(
        held={f"m{m}": {"t": tuple(np.nonzero(owner == m)[0].tolist())} for m in range(3)},
        lags=[int(lag) for lag in rng.pareto(1.1, _N) * 2000 + 500],
        drain_rates=(rng.random(_N) * 10 + 1).tolist(),
        rules=replace(RULES, strategy=strategy, guards=replace(NO_GUARDS, **guards)),  # type: ignore[arg-type]  # the tests know their types
    )
    return walk, tuple(np.nonzero(rng.random(_N) < 0.2)[0].tolist())


@cache
def decided(seed: int, strategy: str) -> tuple[Decision, tuple[int, ...]]:
    walk, pins = drawn(seed, strategy)
    if pins:
        walk.order(pinned={"t": pins})
    return walk.decide(), pins


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_published_drains_no_later_and_moves_nothing_pinned(strategy: str) -> None:
    published = 0
    for seed in range(_GROUPS):
        decision, pins = decided(seed, strategy)

        assert not {move.partition for move in decision.moves} & {*pins}
        if decision.decided == "publish":
            published += 1
            before_s, after_s = decision.figures.drain_s_before, decision.figures.drain_s_after
            assert before_s is not None
            assert after_s is not None
            assert after_s <= before_s * (1 + 1e-9)
    assert published > 0


def test_lag_sticky_is_never_worse_even_before_the_guards() -> None:
    for seed in range(4 * _GROUPS):
        decision, _ = decided(seed, "lag-sticky")

        assert (decision.figures.drain_s_after or math.inf) <= (
            decision.figures.drain_s_before or math.inf
        ) * (1 + 1e-9)
