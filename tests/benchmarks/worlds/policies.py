"""What is compared: no plans, KIP-169 every minute, lagwise as it is, and the oracle (`oracle`)."""

from dataclasses import dataclass, field

import numpy as np

from assignor.model.arrays import Floats, Int32s, Int64s
from assignor.model.claims import UNCLAIMED, Ownership
from assignor.model.group import Group
from assignor.model.subscriptions import Subscriptions
from assignor.model.topics import Topics
from assignor.strategies.registry import STRATEGIES
from tests.benchmarks.worlds.effects import Effects
from tests.benchmarks.worlds.followers import Offer
from tests.benchmarks.worlds.observer import Observer
from tests.benchmarks.worlds.planner import Planner
from tests.benchmarks.worlds.view import View
from tests.benchmarks.worlds.world import World

EVERY_S = 60


@dataclass(slots=True, kw_only=True, eq=False)
class NoPlans:
    """The range assignor when members come or leave, and nothing else."""

    plans: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)

    def look(self, world: World, view: View) -> Offer | Int32s | None:  # noqa: ARG002 - it looks away
        """Nothing."""
        return None

    def owners(self, world: World, usual: Int32s) -> Int32s:  # noqa: ARG002 - see above
        """What the range assignor says."""
        return usual


@dataclass(slots=True, kw_only=True, eq=False)
class Kip169(NoPlans):
    """`lag-aware` in an eager rebalance every minute, and when members come or leave."""

    def look(self, world: World, view: View) -> Offer | Int32s | None:
        """The owners after the rebalance of this minute."""
        if world.now_s == 0 or world.now_s % EVERY_S:
            return None
        self.plans += 1
        return self._assigned(world, np.array(sorted(view.member_ids)))

    def owners(self, world: World, usual: Int32s) -> Int32s:  # noqa: ARG002 - see above
        """The strategy's answer for the members that are there."""
        return self._assigned(world, np.flatnonzero(world.joined))

    def _assigned(self, world: World, slots: Int64s) -> Int32s:
        group = array_group(
            world.scenario.topic_of, n_members=len(slots), lag=world.lag, rate=np.zeros(len(world.lag))
        )
        return slots[STRATEGIES["lag-aware"].assign(group, {}).member].astype(np.int32)


class Lagwise:
    """The real planning, fed and heard as the stream does."""

    def __init__(self) -> None:
        self._effects = Effects()
        self._planner: Planner | None = None
        self._observer: Observer | None = None

    @property
    def plans(self) -> int:
        """See `Planner.plans`."""
        return self._planner.plans if self._planner is not None else 0

    @property
    def reasons(self) -> dict[str, int]:
        """See `Planner.reasons`."""
        return self._planner.reasons if self._planner is not None else {}

    @property
    def effects(self) -> dict[str, int]:
        """See `Effects.counts`."""
        return dict(self._effects.counts)

    def look(self, world: World, view: View) -> Offer | Int32s | None:
        """What `decide` publishes."""
        if self._planner is None or self._observer is None:
            self._planner, self._observer = Planner(scenario=world.scenario), Observer(world)
            return None
        self._observer.look()
        if not self._planner.is_due(view, world.now_s):
            return None
        before, offer = self._planner.plans, self._planner.decide(view, self._observer)
        plan = self._planner.plan
        if plan is not None and offer is not None and self._planner.plans > before:
            self._effects.published(world, plan, offer)
        self._effects.saw(self._planner.judged)
        return offer

    def owners(self, world: World, usual: Int32s) -> Int32s:  # noqa: ARG002 - the group's own assignor decides
        """What the range assignor says."""
        return usual


def array_group(
    topic_of: Int32s,
    *,
    n_members: int,
    lag: Floats,
    rate: Floats,
    capacity: Floats | None = None,
    holder: Int32s | None = None,
    subscriptions: Subscriptions | None = None,
) -> Group:
    """A group straight from arrays, in which everybody subscribes to everything unless said otherwise."""
    counts = np.bincount(topic_of)
    holder = np.full(len(topic_of), -1, np.int32) if holder is None else holder
    return Group(
        topics=Topics(names=tuple(f"t{topic:03}" for topic in range(len(counts))), counts=counts),
        member_ids=tuple(f"m{slot:02}" for slot in range(n_members)),
        subscriptions=subscriptions or Subscriptions.everyone(n_topics=len(counts), n_members=n_members),
        ownership=Ownership(
            holder=holder,
            contested=np.zeros(len(holder), np.bool_),
            generation=np.where(holder >= 0, 1, UNCLAIMED).astype(np.int32),
        ),
        lag=np.ceil(lag).astype(np.int64),
        rate=rate,
        capacity=capacity,
    )
