"""Members that stand still for minutes: a dependency that is away, a long collection of garbage.

A member that hangs does nothing at all, but its group waits for it: session timeout and `max.poll.interval.ms` are
longer than the pause. One that only polls commits the same offsets over and over, and answers plans.
"""

from dataclasses import replace

import numpy as np

from tests.benchmarks.worlds.scenario import Scenario
from tests.benchmarks.worlds.scenarios.parts import TEN_MINUTES, plain

_MINUTE = TEN_MINUTES // 10


def changing_members(rng: np.random.Generator, *, hung: bool) -> Scenario:
    """About every 10 minutes another member stands still for 1 to 3 minutes."""
    group = plain(rng, use=rng.uniform(0.5, 0.65))
    begun, slot = TEN_MINUTES, -1
    while begun < group.frames:
        slot = int(rng.choice([other for other in range(group.n_members) if other != slot]))
        group = stopped(
            group, slot, slice(begun, begun + int(rng.integers(_MINUTE, 3 * _MINUTE + 1))), hung=hung
        )
        begun += int(rng.integers(8 * _MINUTE, 12 * _MINUTE + 1))
    return group


def once(rng: np.random.Generator) -> Scenario:
    """One member stands still for 10 minutes, once; in half of the seeds it hangs."""
    group = plain(rng, use=rng.uniform(0.5, 0.65))
    begun = int(rng.integers(2 * TEN_MINUTES, 6 * TEN_MINUTES))
    frames = slice(begun, begun + TEN_MINUTES)
    return stopped(group, int(rng.integers(group.n_members)), frames, hung=bool(rng.integers(2)))


def stopped(group: Scenario, slot: int, frames: slice, *, hung: bool) -> Scenario:
    """The group with a member that stands still."""
    capacity, hangs = group.capacity.copy(), group.hung.copy()
    capacity[frames, slot], hangs[frames, slot] = 0.0, hung
    return replace(group, capacity=capacity, hung=hangs)
