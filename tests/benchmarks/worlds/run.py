"""One run: a scenario under a policy, frame by frame."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from assignor.model.arrays import Bools, Int32s, Int64s
from tests.benchmarks.worlds.followers import Followers, Offer
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario
from tests.benchmarks.worlds.view import View
from tests.benchmarks.worlds.world import World

_NOTICED_S = 10.0
"""From a member's leaving or coming until the group rebalances."""


class Policy(Protocol):
    """What decides, once per frame."""

    plans: int
    reasons: dict[str, int]
    effects: dict[str, int]

    def look(self, world: World, view: View) -> Offer | Int32s | None:
        """A plan to publish, or the owners after a rebalance that the policy forces, or nothing."""

    def owners(self, world: World, usual: Int32s) -> Int32s:
        """Owners after a rebalance because members came or left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a policy did to one group."""

    lag_area: float
    """Record-seconds, without what no assignment avoids, and with a second for each record."""
    late_h: float
    """Partition-hours with an unread record older than 60 s."""
    moves: int
    moves_back: int
    plans: int
    rebalances: int
    reasons: dict[str, int] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)
    """See `effects.Effects`."""


def run(scenario: Scenario, policy: Policy) -> Outcome:
    """The whole scenario."""
    world = World(scenario)
    followers = Followers(world=world)
    present, incarnation = world.joined, np.ones(scenario.n_members, np.int64)
    for frame in range(scenario.frames):
        answer = policy.look(world, _view(world, followers, present, incarnation))
        if isinstance(answer, Offer):
            followers.take(answer)
        elif answer is not None:
            _rebalance(world, followers, answer, counted=True)
        world.scale()
        joined = world.joined
        if not np.array_equal(joined, present):
            _live(world, followers, until_s=world.now_s + _NOTICED_S)
            incarnation += joined & ~present
            present = joined
            _rebalance(world, followers, policy.owners(world, world.range_owners()), counted=False)
        _live(world, followers, until_s=(frame + 1.0) * FRAME_S)
    totals = world.totals
    # Nothing is read the moment it arrives: without this second, ratios of two tiny areas would say much.
    base = float(scenario.rate.sum()) * FRAME_S
    return Outcome(
        lag_area=totals.lag_area - unavoidable_area(scenario) + base,
        late_h=totals.late_partition_s / 3600,
        moves=totals.plan_moves,
        moves_back=totals.moves_back,
        plans=policy.plans,
        rebalances=totals.rebalances,
        reasons=policy.reasons,
        effects=policy.effects,
    )


def unavoidable_area(scenario: Scenario) -> float:
    """Lag area of the partitions that receive more than the fastest member reads, each alone with that member."""
    fastest = scenario.capacity.max(axis=1, keepdims=True) / scenario.cost
    hopeless = scenario.mean_rate.mean(axis=0) > fastest.mean(axis=0)
    lag, area = scenario.lag.copy(), 0.0
    for growth in (scenario.rate - fastest) * FRAME_S:
        after = np.maximum(lag + growth, 0.0)
        area += float((lag + after)[hopeless].sum()) / 2 * FRAME_S
        lag = after
    return area


def _live(world: World, followers: Followers, *, until_s: float) -> None:
    while (at_s := followers.next_s()) < until_s:
        world.advance(max(at_s, world.now_s))
        followers.act()
    world.advance(until_s)


def _rebalance(world: World, followers: Followers, owner: Int32s, *, counted: bool) -> None:
    world.rebalance(owner, by_plan=np.full(len(owner), counted))
    followers.rebalanced()


def _view(world: World, followers: Followers, present: Bools, incarnation: Int64s) -> View:
    return View(
        generation=followers.generation,
        is_stable=not (world.totals.rebalances and bool((world.resumes_s > world.now_s).all())),
        owner=world.owner.copy(),
        member_ids={
            slot: f"client-{slot:02}-{incarnation[slot]:03}" for slot in np.flatnonzero(present).tolist()
        },
        acks=dict(followers.acks()),
    )
