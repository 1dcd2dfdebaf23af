"""What the judge says of the plans of a run, held against what the plans were good for."""

from collections import Counter
from dataclasses import dataclass, field

from assignor.model.arrays import Int32s
from pipeline.planning.state import Effect, PlanState
from tests.benchmarks.worlds.ahead import Speeds, area_ahead
from tests.benchmarks.worlds.followers import Offer
from tests.benchmarks.worlds.scenario import FRAME_S
from tests.benchmarks.worlds.world import World

GOOD, GOOD_HURT = "good", "good, hurt"


@dataclass(slots=True, kw_only=True)
class Effects:
    """Plans by effect, and how many of them were good."""

    _good: dict[int, bool] = field(default_factory=dict)
    """By time of the first publication."""
    _effects: dict[int, Effect] = field(default_factory=dict)
    """The same; the newest of each."""
    _before: Int32s | None = None
    """Member of each partition before the first of the plans that are judged together."""

    @property
    def counts(self) -> Counter[str]:
        """Plans by effect, good ones, and good ones that were judged hurt."""
        good = [effect for at_ms, effect in self._effects.items() if self._good.get(at_ms)]
        hurt = good.count("hurt")
        return Counter(self._effects.values()) + Counter({GOOD: len(good), GOOD_HURT: hurt})

    def published(self, world: World, plan: PlanState, offer: Offer) -> None:
        """A new plan is published now: it is good if from here, with true speeds, less lag area follows than without.

        A plan that the judge judges together with those before it is held against the assignment before the first of
        them. One that starts while a partition is between two members is not looked at.
        """
        if offer.target is None or (world.owner < 0).any() or (offer.target < 0).any():
            return
        if plan.series == 1:
            self._before = world.owner.copy()
        before = self._before if self._before is not None else world.owner
        stays, goes = area_ahead(world, _true(world), [before, offer.target])
        self._good[plan.published_at_ms] = bool(goes < stays)

    def saw(self, plan: PlanState | None) -> None:
        """The newest plan before a decision, with what that sees of it."""
        if plan is not None and plan.effect is not None:
            self._effects[plan.published_at_ms] = plan.effect


def _true(world: World) -> Speeds:
    scenario = world.scenario
    capacity = scenario.capacity[world.frame]
    # Of one that stands still nobody knows for how long: a minute is what members of these worlds do at least.
    return Speeds(
        capacity=scenario.capacity.max(axis=0) * (capacity == 0) + capacity,
        stands_s=(capacity == 0) * 2.0 * FRAME_S,
    )
