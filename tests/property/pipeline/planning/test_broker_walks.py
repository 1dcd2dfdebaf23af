"""A KIP-848 group walked at random past many decisions: its broker takes plans, assigns by itself, or does nothing."""

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.evaluation.validity import check
from assignor.protocol.control import decode
from assignor.protocol.ranges import format_ranges
from pipeline.planning.state import FRESH
from pipeline.planning.values import Decision
from tests.support.planning.alone import to_problem
from tests.support.planning.broker_walk import FOLLOWED, BrokerWalk
from tests.support.planning.facts import NO_GUARDS, partitions
from tests.support.planning.plan_walk import Held

PARTITIONS = 6
RULES = replace(
    FOLLOWED,
    guards=replace(NO_GUARDS, settle_ms=30_000, cooldown_ms=120_000, cooldown_max_ms=600_000),
)
ACTIONS = ("wait", "lag", "take", "move", "arrive", "assign", "join", "leave", "stick", "advise")


@dataclass(slots=True, kw_only=True)
class World:
    """The group, and what may happen to it."""

    walk: BrokerWalk
    newest: Decision | None = None
    """That published last."""
    joined: int = 0
    waited_s: float = 60
    ends: set[str] = field(default_factory=set)

    def run(self, action: str, n: int) -> None:
        getattr(self, action)(n)
        walk = self.walk
        decision = walk.decide(after_s=self.waited_s)
        if decision.decided == "publish" and decision.record is not None:
            self.newest = decision
        self.hold(decision)

    def hold(self, decision: Decision) -> None:
        """What is true of every decision."""
        walk, plan = self.walk, decision.plan
        if decision.target is not None:
            lags = partitions(walk.lags, observed_at_ms=walk.now_ms)
            problem, _ = to_problem(walk.facts(), lags, walk.rules, FRESH, now_ms=walk.now_ms)
            check(problem.group, decision.target.assignment)
        if decision.decided in {"advice", "dry_run", "unchanged", "abstain"}:
            assert decision.sent is None
        if decision.record is not None:
            record = decode(decision.record.encode())
            assert walk.group_state == "Stable"
            assert (record.group_protocol, record.base_generation) == ("consumer", walk.epoch)
            assert set(record.members) == set(walk.held)
            assert {n for one in record.members.values() for n in one.target.get("t", ())} == set(
                range(PARTITIONS)
            )
        if plan is not None and plan.status != "open" and plan.status_at_ms == walk.now_ms:
            self.ends.add(plan.status)
            if plan.status == "applied":
                assert walk.group_state == "Stable"
                assert _ranges(walk.held) == plan.target

    def wait(self, n: int) -> None:
        self.waited_s = (1, 30, 60, 299, 700)[n % 5]

    def lag(self, n: int) -> None:
        self.walk.lags = [(n * (7 * number + 3)) % 5_000 for number in range(PARTITIONS)]

    def take(self, _: int) -> None:
        if self.newest is not None and set(self.newest.assignment or {}) == set(self.walk.held):
            self.walk.take(self.newest)

    def move(self, n: int) -> None:
        """A member gives up or gets one partition on the way to the target."""
        walk = self.walk
        if walk.target is None:
            return
        number = n % PARTITIONS
        owner = next((name for name, held in walk.held.items() if number in held.get("t", ())), None)
        wanted = next(name for name, held in walk.target.items() if number in held.get("t", ()))
        if owner == wanted:
            return
        held = {name: set(one.get("t", ())) - {number} for name, one in walk.held.items()}
        if owner is None:
            held[wanted].add(number)
        walk.held = {name: {"t": tuple(sorted(one))} for name, one in held.items()}

    def arrive(self, _: int) -> None:
        if self.walk.target is not None:
            self.walk.arrive()

    def assign(self, n: int) -> None:
        """The broker assigns by itself."""
        self.deal(sorted(self.walk.held), n)

    def join(self, n: int) -> None:
        self.joined += 1
        self.walk.held = {**self.walk.held, f"m{self.joined}": {}}
        self.deal(sorted(self.walk.held), n)

    def leave(self, n: int) -> None:
        if len(self.walk.held) > 1:
            gone = sorted(self.walk.held)[n % len(self.walk.held)]
            self.walk.held = {name: held for name, held in self.walk.held.items() if name != gone}
            self.deal(sorted(self.walk.held), n)

    def deal(self, members: list[str], n: int) -> None:
        self.walk.aim(
            {
                name: {"t": tuple(p for p in range(PARTITIONS) if (p + n) % len(members) == at)}
                for at, name in enumerate(members)
            }
        )

    def stick(self, n: int) -> None:
        if self.walk.target is not None:
            self.walk.stuck = frozenset({sorted(self.walk.held)[n % len(self.walk.held)]})

    def advise(self, _: int) -> None:
        """The setting is taken away, or given."""
        self.walk.rules = replace(self.walk.rules, broker_follows=not self.walk.rules.broker_follows)


def _ranges(held: Held) -> dict[str, dict[str, str]]:
    return {
        name: {topic: format_ranges(numbers) for topic, numbers in one.items() if numbers}
        for name, one in held.items()
    }


def started() -> World:
    return World(
        walk=BrokerWalk(
            held={"a": {"t": (0, 1, 2)}, "b": {"t": (3, 4, 5)}}, lags=[900, 800, 700, 10, 0, 0], rules=RULES
        )
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 10_000)), max_size=25))
def test_every_target_is_valid_and_every_end_is_true(steps: list[tuple[str, int]]) -> None:
    world = started()
    for action, n in steps:
        world.run(action, n)


def test_walk_meets_plans_that_are_applied_superseded_partly_made_and_expired() -> None:
    ends = set[str]()
    for steps in (
        [("wait", 2), ("take", 0), ("arrive", 0)],
        [("wait", 2), ("assign", 1), ("arrive", 0)],
        [("wait", 2), ("take", 0), *(("move", n) for n in [*range(PARTITIONS), *range(3)]), ("assign", 1)],
        [("wait", 2), ("wait", 4), ("wait", 4)],
    ):
        world = started()
        # The group has to settle first.
        for action, n in [("wait", 2), *steps]:
            world.run(action, n)
        ends |= world.ends

    assert ends == {"applied", "superseded", "partly", "expired"}
