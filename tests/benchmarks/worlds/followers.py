"""What members do with a plan: those that follow accept it, and hand over what it takes from them.

A giver releases a partition once its taker has accepted, as `assignor.clients.follower` does. A member that has
other partitions than the plan says refuses it. A member that does not follow neither accepts nor gives, and one that
hangs does so when it goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from assignor.model.arrays import Int32s
from tests.benchmarks.worlds.scenario import FRAME_S
from tests.benchmarks.worlds.world import World

_GIVER_HEARS_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A plan on the control topic, by slots."""

    epoch: int
    generation: int
    target: Int32s | None
    """Slot of each partition, -1 for nobody; None withdraws the plan."""
    base: Int32s | None = None
    """Slot of each partition that the plan starts from; None fits every state."""
    valid_until_s: float = float("inf")


@dataclass(slots=True, kw_only=True, eq=False)
class Followers:
    """The members as they follow the newest plan."""

    world: World
    generation: int = 1
    offer: Offer | None = None
    answers: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Slot -> its newest acknowledgement: kind, and the plan's epoch."""
    _hears: dict[int, float] = field(default_factory=dict)
    _releases: dict[int, float] = field(default_factory=dict)

    def take(self, offer: Offer) -> None:
        """A plan is published now."""
        now_s, scenario = self.world.now_s, self.world.scenario
        self.offer, self._releases = offer, {}
        present = self.world.joined & scenario.follows
        self._hears = (
            {}
            if offer.target is None
            else {int(slot): now_s + float(scenario.hears_s[slot]) for slot in np.flatnonzero(present)}
        )

    def rebalanced(self) -> None:
        """A new generation: plans for the earlier one are void."""
        self.generation += 1
        self.offer, self._hears, self._releases, self.answers = None, {}, {}, {}

    def next_s(self) -> float:
        """When a member acts next."""
        return min((*self._hears.values(), *self._releases.values()), default=float("inf"))

    def act(self) -> None:
        """Everything that is due now."""
        now_s = self.world.now_s
        self._wait_for_hung()
        for slot in sorted(slot for slot, at_s in self._hears.items() if at_s <= now_s):
            del self._hears[slot]
            self._answer(slot)
        due = [partition for partition, at_s in self._releases.items() if at_s <= now_s]
        for partition in due:
            del self._releases[partition]
        offer = self.offer
        if due and offer is not None and offer.target is not None:
            pids = np.array(due)
            pids = pids[self.world.owner[pids] >= 0]
            self.world.hand_over(pids, offer.target[pids])
        self._note_applied()

    def _wait_for_hung(self) -> None:
        """Put off to the next frame what a member that hangs would do now."""
        world = self.world
        hangs, next_s = world.scenario.hung[world.frame], (world.frame + 1.0) * FRAME_S
        self._hears.update(
            {slot: next_s for slot, at_s in self._hears.items() if at_s <= world.now_s and hangs[slot]}
        )
        self._releases.update(
            {
                partition: next_s
                for partition, at_s in self._releases.items()
                if at_s <= world.now_s and world.owner[partition] >= 0 and hangs[world.owner[partition]]
            }
        )

    def _answer(self, slot: int) -> None:
        offer, owner = self.offer, self.world.owner
        if offer is None or offer.target is None or offer.valid_until_s < self.world.now_s:
            return
        fits = offer.base is None or np.array_equal(owner == slot, offer.base == slot)
        is_current = offer.generation == self.generation
        self.answers[slot] = ("accepted" if fits and is_current else "refused", offer.epoch)
        if not (fits and is_current):
            return
        accepted = [member for member, answer in self.answers.items() if answer == ("accepted", offer.epoch)]
        ready = np.isin(owner, accepted) & np.isin(offer.target, accepted) & (owner != offer.target)
        for partition in np.flatnonzero(ready).tolist():
            self._releases.setdefault(partition, self.world.now_s + _GIVER_HEARS_S)

    def _note_applied(self) -> None:
        offer, world = self.offer, self.world
        if offer is None or offer.target is None:
            return
        for slot, answer in self.answers.items():
            is_done = np.array_equal(world.owner == slot, offer.target == slot)
            waits = (world.taker >= 0) & (world.giver == slot)
            if answer == ("accepted", offer.epoch) and is_done and not waits.any():
                self.answers[slot] = ("applied", offer.epoch)

    def acks(self) -> Mapping[int, tuple[str, int]]:
        """Newest acknowledgement of each slot, as of now."""
        self._note_applied()
        return self.answers
