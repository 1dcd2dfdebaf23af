"""A group walked at random past many decisions: it moves, rebalances, answers, or does nothing of what it is told."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.clients.control import misfit, spread, targets
from assignor.clients.plugin import leader
from assignor.clients.plugin.user_data import SubscriptionData, encode_subscription_data
from assignor.protocol.acks import MAX_INT32
from assignor.protocol.commands import Approval
from assignor.protocol.control import ControlRecord, decode
from assignor.protocol.kafka.sticky import Claims
from assignor.protocol.ranges import parse_ranges
from assignor.strategies.registry import strategy
from pipeline.planning.facts import AckFacts, Rules
from pipeline.planning.state import PlanState, to_json
from pipeline.planning.values import Decision
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import Held, Walk

PARTITIONS = 6
PLACES = frozenset(("t", number) for number in range(PARTITIONS))
GUARDS = replace(
    NO_GUARDS,
    confirmations=2,
    settle_ms=30_000,
    cooldown_ms=120_000,
    cooldown_max_ms=600_000,
    partition_rest_ms=60_000,
    partition_moves_per_day=3,
)


@dataclass(slots=True, kw_only=True)
class World:
    """A group whose members hold partitions of one topic, and whatever may happen to it."""

    walk: Walk
    record: ControlRecord | None = None
    """Newest on the control topic."""
    waited_s: float = 60
    joined: int = 2
    looked_at: tuple[str, str] | None = None
    """Hashes of a plan that has waited."""
    approved: set[tuple[str, str]] = field(default_factory=set)
    """Hashes that operators have approved."""

    @property
    def members(self) -> list[str]:
        return sorted(self.walk.held)

    def deal(self, members: list[str]) -> None:
        """Kafka gives out all partitions anew, also what was on its way from one member to another."""
        numbers = range(PARTITIONS)
        self.walk.held = {name: {"t": tuple(numbers[at :: len(members)])} for at, name in enumerate(members)}
        self.walk.generation += 1

    def wait(self, n: int) -> None:
        self.waited_s = (1, 30, 60, 299, 600)[n % 5]

    def lag(self, n: int) -> None:
        self.walk.lags = [(n * (7 * number + 3)) % 5_000 for number in range(PARTITIONS)]

    def rebalance(self, _: int) -> None:
        self.deal(self.members)

    def join(self, _: int) -> None:
        self.joined += 1
        self.deal([*self.members, f"m{self.joined}"])

    def leave(self, n: int) -> None:
        if len(self.members) > 1:
            self.deal([name for name in self.members if name != self.members[n % len(self.members)]])

    def apply(self, _: int) -> None:
        """The leader of the next generation gives out the whole target."""
        if self.is_for_members:
            assert self.record is not None
            self.walk.held = {name: self.record.members[name].target for name in self.members}
            self.walk.generation += 1

    def release(self, _: int) -> None:
        """The first partition that is not where it belongs leaves its owner."""
        for place, _taker in self._misplaced(held=True):
            self._place(place, None)
            return

    def take(self, _: int) -> None:
        """The first partition that is with nobody arrives where it belongs."""
        for place, taker in self._misplaced(held=False):
            self._place(place, taker)
            return

    def accept(self, n: int) -> None:
        self._say("accepted", n)

    def refuse(self, n: int) -> None:
        self._say("refused", n)

    def pause(self, n: int) -> None:
        self.walk.order(paused=n % 2 == 0)

    def trigger(self, _: int) -> None:
        self.walk.order(triggered_at_ms=self.walk.now_ms)

    def approve(self, n: int) -> None:
        """An operator approves the plan that waits, or one that he has looked at before, or of nobody."""
        waiting = self.walk.state.waiting
        hashes = waiting.hashes if waiting is not None and n % 4 else ("t", "b")
        if waiting is not None and n % 4 == 1 and self.looked_at is not None:
            hashes = self.looked_at
        self.looked_at = waiting.hashes if waiting is not None else self.looked_at
        self.approved.add(hashes)
        self.walk.order(
            approval=Approval(target_hash=hashes[0], base_hash=hashes[1], by="eva", at_ms=self.walk.now_ms)
        )

    def pin(self, n: int) -> None:
        self.walk.order(pinned={"t": (n % PARTITIONS,)})

    @property
    def is_for_members(self) -> bool:
        return self.record is not None and set(self.record.members) == set(self.members)

    def _say(self, kind: str, n: int) -> None:
        if self.record is not None:
            who = self.members[n % len(self.members)]
            ack = AckFacts(kind=kind, member_id=who, epoch=self.record.epoch, why="so")
            self.walk.acks = (
                *(one for one in self.walk.acks if (one.kind, one.member_id) != (kind, who)),
                ack,
            )

    def _misplaced(self, *, held: bool) -> Iterator[tuple[tuple[str, int], str]]:
        holder = {place: name for name, topics in self.walk.held.items() for place in spread(topics)}
        if self.record is not None and self.is_for_members:
            for place, taker in sorted(targets(self.record).items()):
                if holder.get(place) != taker and (place in holder) == held:
                    yield place, taker

    def _place(self, place: tuple[str, int], taker: str | None) -> None:
        holder = {place: name for name, topics in self.walk.held.items() for place in spread(topics)}
        holder[place] = taker or ""
        self.walk.held = {
            name: {"t": tuple(number for (_, number), who in sorted(holder.items()) if who == name)}
            for name in self.members
        }

    def decide(self) -> Decision:
        """The next decision, which is the same when it is made twice."""
        self.walk.now_ms += round(self.waited_s * 1000)
        self.waited_s = 60
        twin = copy(self.walk)
        decision = self.walk.decide()
        assert twin.decide() == decision
        if decision.record is not None:
            self.record = decode(decision.record.encode())
        return decision


Event: TypeAlias = Callable[[World, int], None]
OFTEN: tuple[Event, ...] = (
    World.wait,
    World.lag,
    World.release,
    World.take,
    World.apply,
    World.accept,
    World.rebalance,
    World.trigger,
)
ASKING: tuple[Event, ...] = (*OFTEN, World.approve, World.approve)
SELDOM: tuple[Event, ...] = (
    World.refuse,
    World.pause,
    World.pin,
    World.join,
    World.leave,
)


def held_places(held: Held) -> list[tuple[str, int]]:
    return [place for topics in held.values() for place in spread(topics)]


def judge_published(world: World, record: ControlRecord, epoch: int) -> None:
    """It is complete, it starts from what is, and both kinds of consumers can follow it."""
    walk = world.walk
    assert (record.epoch, record.base_generation) == (epoch, walk.generation)
    assert {name: member.base for name, member in record.members.items()} == {
        name: {topic: numbers for topic, numbers in topics.items() if numbers}
        for name, topics in walk.held.items()
    }
    placed = [place for member in record.members.values() for place in spread(member.target)]
    assert sorted(placed) == sorted(PLACES)
    if len(held_places(walk.held)) == PARTITIONS:
        for name, held in walk.held.items():
            owned = frozenset(spread(held))
            assert misfit(record, generation=walk.generation, member=name, owned=owned) is None
    joined = [
        leader.Joined(member_id=name, topics=["t"], user_data=claim(held, walk.generation))
        for name, held in walk.held.items()
    ]
    led = leader.decide(counts={"t": PARTITIONS}, members=joined, strategy=strategy("sticky"), plan=record)
    assert led.plan_epoch == epoch


def claim(held: Mapping[str, tuple[int, ...]], generation: int) -> bytes:
    assert generation <= MAX_INT32
    claims = Claims(owned=held, generation=generation)
    return encode_subscription_data(SubscriptionData(claims=claims, plan_epoch=0, held=False))


def judge_memory(walk: Walk) -> None:
    """The memory of a group is bounded, and an open plan has time left."""
    assert all(len(times) <= GUARDS.partition_moves_per_day for times in walk.state.moved_at_ms.values())
    plan = walk.state.plan
    # Some facts about each member of the group or its newest plan, however much has happened.
    members = {*walk.held, *(plan.target if plan is not None else ())}
    assert len(to_json(walk.state)) < 2_000 + 600 * len(members)
    if plan is not None and plan.status == "open":
        assert walk.now_ms < plan.valid_until_ms <= walk.now_ms + RULES.valid_for_ms


def judge_restored(walk: Walk, before: PlanState, decision: Decision) -> None:
    """A plan that was taken is finished, whatever lag does, and gets more time only when something has moved."""
    plan, after = decision.plan, walk.state.plan
    assert plan is not None
    assert after is not None
    is_whole = len(held_places(walk.held)) == PARTITIONS
    target = {
        name: {topic: parse_ranges(ranges, at_most=PARTITIONS) for topic, ranges in topics.items()}
        for name, topics in before.target.items()
    }
    is_there = is_whole and all(set(spread(walk.held[name])) == set(spread(target[name])) for name in target)
    if plan.is_restored and not is_there and decision.decided == "publish" and plan.status == "open":
        assert decision.assignment == before.target
    if plan.is_restored and is_whole and not is_there and walk.generation != plan.base_generation:
        assert (decision.decided, decision.assignment) == ("publish", before.target)
    if plan.is_adopted and plan.status == "open" and after.valid_until_ms > plan.valid_until_ms:
        assert plan.done > plan.done_then


def judge_asked(world: World, before: PlanState | None, decision: Decision) -> None:
    """Nothing is published that nobody approved, but for the target that was approved before."""
    waiting = world.walk.state.waiting
    assert (decision.decided == "awaiting_approval") == (
        waiting is not None and decision.decided != "abstain"
    )
    if decision.record is None:
        return
    is_again = before is not None and before.approved_by and decision.assignment == before.target
    assert is_again or (decision.target_hash, decision.base_hash) in world.approved


def judge_pins(walk: Walk, decision: Decision) -> None:
    """What is out never takes a pinned partition from who has it."""
    is_out = walk.published is not None and walk.published.valid_until_ms > walk.now_ms
    plan = walk.state.plan
    if walk.orders is None or decision.decided == "abstain" or plan is None or not is_out:
        return
    assert walk.published is not None
    if plan.epoch != walk.published.epoch or set(plan.target) != set(walk.held):
        return
    for name, topics in plan.target.items():
        gone = set(spread(walk.held[name])) - {
            ("t", n) for n in parse_ranges(topics.get("t", ""), at_most=PARTITIONS)
        }
        assert not gone & {("t", n) for n in walk.orders.pinned.get("t", ())}


def step(world: World, event: Event, n: int) -> None:
    event(world, n)
    walk = world.walk
    before, published = walk.state.plan, walk.published

    decision = world.decide()

    is_paused = walk.orders is not None and walk.orders.paused
    if is_paused:
        # What is out is taken back, once.
        was_out = published is not None and published.valid_until_ms > walk.now_ms
        assert (decision.decided, decision.record) == ("publish" if was_out else "abstain", None)
        assert decision.epoch == (published.epoch + 1 if published is not None and was_out else None)
    is_withdrawn = decision.decided == "publish" and decision.record is None
    assert is_withdrawn == (decision.reason or "").startswith("withdrawn: ")
    if decision.record is not None:
        assert decision.decided == "publish"
        assert world.record is not None
        judge_published(world, world.record, epoch=(published.epoch if published else 0) + 1)
    judge_memory(walk)
    judge_pins(walk, decision)
    is_plan = decision.record is not None
    is_ours = before is not None and published is not None and published.epoch == before.epoch
    if (
        before is not None
        and is_ours
        and set(before.target) == set(walk.held)
        and decision.decided != "abstain"
        and not is_withdrawn
    ):
        judge_restored(walk, before, decision)
    if walk.rules.needs_approval:
        judge_asked(world, before, decision)
    is_of_others = before is not None and set(before.target) != set(walk.held)
    if is_ours and is_of_others and is_plan and decision.plan is not None and decision.plan.is_restored:
        # It would come back with its members: only a better plan takes its place.
        assert decision.moves


def walked(rules: Rules, events: list[tuple[Event, int]]) -> None:
    world = World(walk=Walk(held={}, lags=[4_000, 3_000, 2_000, 0, 0, 0], rules=rules))
    world.deal(["m1", "m2"])

    for event, n in events:
        step(world, event, n)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from((*OFTEN, *OFTEN, *SELDOM)), st.integers(0, 9_999)), min_size=10, max_size=30
    )
)
def test_whatever_a_group_does_its_plans_are_whole_finished_and_over_in_time(
    events: list[tuple[Event, int]],
) -> None:
    walked(replace(RULES, guards=GUARDS), events)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from((*ASKING, *ASKING, *SELDOM)), st.integers(0, 9_999)),
        min_size=10,
        max_size=30,
    )
)
def test_whatever_a_group_does_nothing_is_published_that_nobody_approved(
    events: list[tuple[Event, int]],
) -> None:
    walked(replace(RULES, guards=GUARDS, needs_approval=True), events)
