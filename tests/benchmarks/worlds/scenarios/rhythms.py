"""Groups that commit rarely, by count or irregularly: what they read shows late, and lag grows between commits."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tests.benchmarks.worlds.commits import Rhythm, by_count, every, irregular
from tests.benchmarks.worlds.scenario import Scenario
from tests.benchmarks.worlds.scenarios.parts import CAPACITY, TEN_MINUTES, plain, slowed

_Rhythms = Callable[[np.random.Generator, Scenario], tuple[Rhythm, ...]]


def slow_member(rng: np.random.Generator, *, commits: str) -> Scenario:
    """From the tenth minute on a member has a half or a third of its speed, in a group that commits like this."""
    group = plain(rng, use=rng.uniform(0.5, 0.65))
    group = slowed(rng, group, from_frame=TEN_MINUTES, to_frame=group.frames)
    return replace(group, commits=RHYTHMS[commits](rng, group))


def quiet(rng: np.random.Generator, *, commits: str) -> Scenario:
    """Nothing is wrong, and no plan is due: the lag between two commits is no backlog."""
    group = plain(rng, use=rng.uniform(0.5, 0.7))
    return replace(group, commits=RHYTHMS[commits](rng, group))


def _every(rng: np.random.Generator, group: Scenario, *, interval_s: float) -> tuple[Rhythm, ...]:
    return every(rng, group.n_members, interval_s=interval_s)


def _by_count(rng: np.random.Generator, group: Scenario) -> tuple[Rhythm, ...]:
    """Every 5 to 60 s as long as a member reads at half its speed."""
    return by_count(rng, group.n_members, records=float(rng.uniform(5, 60) * CAPACITY / 2))


def _irregular(rng: np.random.Generator, group: Scenario) -> tuple[Rhythm, ...]:
    return irregular(rng, group.n_members, until_s=group.horizon_s)


RHYTHMS: Mapping[str, _Rhythms] = {
    "every 1 s": lambda rng, group: _every(rng, group, interval_s=1.0),
    "every 15 s": lambda rng, group: _every(rng, group, interval_s=15.0),
    "every 30 s": lambda rng, group: _every(rng, group, interval_s=30.0),
    "every 60 s": lambda rng, group: _every(rng, group, interval_s=60.0),
    "by count": _by_count,
    "irregularly": _irregular,
}
"""How the members of a group commit."""
