"""An oracle to measure against: it knows what is true now, though not what will come.

It knows costs, mean arrivals and true lag as they are, and a member's capacity without noise as of the member's newest
commit: of a change it learns by the first commit after it. It shares with lagwise what cannot be wished away: the
evaluation interval, the settle time, who follows and how fast, what is pinned, and the pauses of moves. It has no other
guard: each minute it takes the best of a few targets of `lag-sticky`, if rolling the world forward from here shows less
lag area than leaving the group alone.

Of a member that stands still, and commits that it does, it believes that this takes as long again as it has taken. A
member that hangs does not commit: nobody, and so not the oracle either, knows that it stands still.
"""

from dataclasses import dataclass, field

import numpy as np

from assignor.model.arrays import Bools, Floats, Int32s, Int64s
from assignor.model.subscriptions import Subscriptions
from assignor.strategies.registry import STRATEGIES
from pipeline.config.model import GuardsConfig
from tests.benchmarks.worlds.ahead import AHEAD_S, Speeds, area_ahead
from tests.benchmarks.worlds.followers import Offer
from tests.benchmarks.worlds.policies import EVERY_S, array_group
from tests.benchmarks.worlds.scenario import FRAME_S
from tests.benchmarks.worlds.view import View
from tests.benchmarks.worlds.world import World

_SETTLE_S = GuardsConfig().settle_s
_LEAST_GAIN = 0.01
_LITTLE_S = 1.0
"""A group that leaves no record longer than this has nothing to gain."""
_FREE = {"move_cost_s": 0.0, "floor_s": 0.0, "min_gain": 0.0, "move_pause_s": 0.0}
_BUDGET_SHARES = (0.0, 0.1, 0.3, 1.0)


@dataclass(slots=True, kw_only=True, eq=False)
class Oracle:
    """See above."""

    plans: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)
    _generation: int = 0
    _since_s: float = 0.0
    _capacity: Floats | None = None
    _stands_since_s: Floats | None = None

    def owners(self, world: World, usual: Int32s) -> Int32s:  # noqa: ARG002 - the group's own assignor decides
        """What the range assignor says."""
        return usual

    def look(self, world: World, view: View) -> Offer | Int32s | None:
        """The target to go to from here."""
        speeds = self._learn(world)
        if view.generation != self._generation:
            self._generation, self._since_s = view.generation, world.now_s
        is_between = bool((view.owner < 0).any())
        is_settled = world.now_s - self._since_s >= _SETTLE_S
        if world.now_s % EVERY_S or is_between or not is_settled or not view.is_stable:
            return None
        target = self._best(world, view, speeds)
        if target is None:
            return None
        self.plans += 1
        return Offer(epoch=self.plans, generation=view.generation, target=target)

    def _learn(self, world: World) -> Speeds:
        """What the newest commits show."""
        shown, now_s = world.shown_capacity, world.now_s
        if self._capacity is None or self._stands_since_s is None:
            self._capacity, self._stands_since_s = shown.copy(), np.full(len(shown), np.inf)
        stands = shown == 0
        self._capacity = np.where(stands, self._capacity, shown)
        self._stands_since_s = np.where(stands, np.minimum(self._stands_since_s, now_s), np.inf)
        return Speeds(
            capacity=self._capacity, stands_s=np.where(stands, now_s - self._stands_since_s + FRAME_S, 0.0)
        )

    def _best(self, world: World, view: View, speeds: Speeds) -> Int32s | None:
        stay = area_ahead(world, speeds, [view.owner])[0]
        arriving = float(world.scenario.mean_rate[world.frame].sum())
        if stay <= _LITTLE_S * arriving * AHEAD_S:
            return None
        targets = _targets(world, view, speeds.capacity)
        if speeds.stands_s.any():
            targets += _targets(world, view, np.where(speeds.stands_s > 0, 0.0, speeds.capacity))
        if not targets:
            return None
        areas = area_ahead(world, speeds, targets)
        best = int(areas.argmin())
        return targets[best] if areas[best] < (1 - _LEAST_GAIN) * stay else None


def _targets(world: World, view: View, capacity: Floats) -> list[Int32s]:
    """Answers of `lag-sticky` with more and with less to spend, those that move something."""
    scenario, frame = world.scenario, world.frame
    slots = np.array(sorted(view.member_ids))
    position = np.full(scenario.n_members, -1, np.int32)
    position[slots] = np.arange(len(slots))
    follows = scenario.follows[slots]
    holder = position[view.owner]
    group = array_group(
        np.arange(scenario.n_partitions, dtype=np.int32),
        n_members=len(slots),
        lag=world.lag * scenario.cost,
        rate=scenario.mean_rate[frame] * scenario.cost,
        capacity=np.maximum(capacity[slots], 1e-3),
        holder=holder,
        subscriptions=_choices(
            holder, scenario.pinned | ~follows[holder], np.flatnonzero(follows), n=len(slots)
        ),
    )
    found: dict[bytes, Int32s] = {}
    for share in _BUDGET_SHARES:
        most = max(1, round(share * scenario.n_partitions))
        target = slots[STRATEGIES["lag-sticky"].assign(group, {**_FREE, "max_moves": most}).member]
        if (target != view.owner).any():
            found[target.tobytes()] = target.astype(np.int32)
    return list(found.values())


def _choices(holder: Int32s, fixed: Bools, followers: Int64s, *, n: int) -> Subscriptions:
    """One topic per partition: a fixed one has no other subscriber than its owner, the others all that follow."""
    sizes = [len(followers), *[1] * n]
    return Subscriptions(
        n_members=n,
        set_of_topic=np.where(fixed, holder + 1, 0).astype(np.int32),
        offsets=np.cumsum([0, *sizes]).astype(np.int64),
        members=np.concatenate([followers, np.arange(n)]).astype(np.int32),
    )
