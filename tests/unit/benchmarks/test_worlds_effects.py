"""What the judge of a run said, held against what its plans were good for."""

from dataclasses import replace

import numpy as np

from pipeline.planning.state import PlanState
from tests.benchmarks.worlds.effects import GOOD, GOOD_HURT, Effects
from tests.benchmarks.worlds.followers import Offer
from tests.benchmarks.worlds.scenarios.parts import plain
from tests.benchmarks.worlds.world import World


def plan(published_at_ms: int) -> PlanState:
    """One whose target nobody looks at here."""
    return PlanState(
        epoch=1,
        base_generation=1,
        target={},
        revoked={},
        moves=1,
        published_at_ms=published_at_ms,
        sent_at_ms=published_at_ms,
        valid_until_ms=published_at_ms,
        lag=0,
        drain_s=None,
        status_at_ms=published_at_ms,
    )


def group_with_a_slow_member() -> World:
    """Member 0 does half of what it receives."""
    group = plain(np.random.default_rng(3), use=0.5, members=(3, 3), hours=1)
    capacity = group.capacity.copy()
    capacity[:, 0] = 250.0
    return World(replace(group, capacity=capacity))


def test_plan_is_good_if_less_lag_is_ahead_with_it_and_counts_when_it_is_judged_hurt() -> None:
    world, effects = group_with_a_slow_member(), Effects()
    (of_slow, *_), (of_other, *_) = np.flatnonzero(world.owner == 0), np.flatnonzero(world.owner == 1)
    for at_ms, partition, to in ((1, of_slow, 1), (2, of_other, 0)):
        target = world.owner.copy()
        target[partition] = to
        effects.published(world, plan(at_ms), Offer(epoch=at_ms, generation=1, target=target))
        effects.saw(replace(plan(at_ms), effect="hurt"))

    assert (effects.counts["hurt"], effects.counts[GOOD], effects.counts[GOOD_HURT]) == (2, 1, 1)


def test_newest_verdict_on_a_plan_counts_and_one_without_does_not() -> None:
    effects = Effects()
    for effect in (None, "cannot tell", "hurt"):
        effects.saw(replace(plan(1), effect=effect))
    effects.saw(plan(2))
    effects.saw(None)

    assert +effects.counts == {"hurt": 1}
