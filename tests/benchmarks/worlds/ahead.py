"""Lag from now on under a target, if speeds and arrivals stay constant."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.model.arrays import Floats, Int32s
from tests.benchmarks.worlds.service import served
from tests.benchmarks.worlds.world import World

AHEAD_S = 1800
_STEP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Speeds:
    """Assumed speeds of N members."""

    capacity: Floats
    """Units of work per second while the member works."""
    stands_s: Floats
    """Seconds for which the member still stands still."""


def area_ahead(world: World, speeds: Speeds, targets: Sequence[Int32s]) -> Floats:
    """Lag area of the next `AHEAD_S` seconds under each target, with the pauses on the way to it.

    Arrivals and capacities stay as they are. All targets are rolled forward at once, side by side.
    """
    scenario, frame, n = world.scenario, world.frame, world.scenario.n_members
    k = len(targets)
    target = np.stack(targets)
    cost = np.tile(scenario.cost, k)
    rate = np.tile(scenario.mean_rate[frame], k)
    lag = np.tile(world.lag, k)
    offset = np.repeat(np.arange(k, dtype=np.int32) * n, scenario.n_partitions)
    moved = (target != world.owner).ravel()
    before, after = np.tile(world.owner, k) + offset, target.ravel() + offset
    pause_s = float(scenario.hand_over_s.mean())
    steps = [
        (float(scenario.hears_s.mean()), before, np.zeros(len(moved), np.bool_)),
        (pause_s, after, moved),
        *[(_STEP_S, after, np.zeros(len(moved), np.bool_))] * int(AHEAD_S // _STEP_S),
    ]
    area, passed_s = np.zeros(k), 0.0
    for length_s, member, is_paused in steps:
        present = lag + rate * length_s
        works_s = np.clip(passed_s + length_s - speeds.stands_s, 0.0, length_s)
        budget = np.tile(speeds.capacity * works_s, k)
        work = served(np.where(is_paused, 0.0, present * cost), member, budget)
        left = present - work / cost
        area += (lag + left).reshape(k, -1).sum(axis=1) / 2 * length_s
        lag, passed_s = left, passed_s + length_s
    return area
