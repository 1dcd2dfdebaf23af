"""A KIP-848 group whose broker follows plans, over several decisions: what one leaves, the next one finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assignor.protocol.commands import Orders
from assignor.protocol.ranges import parse_ranges
from pipeline.planning.facts import GroupFacts, Reconciliation, Rules
from pipeline.planning.state import FRESH, GroupState, from_json, to_json
from pipeline.planning.values import Decision, Published
from tests.support.planning.alone import decide
from tests.support.planning.facts import NOW_MS, RULES, kip848_group, partitions
from tests.support.planning.plan_walk import Held, out

FOLLOWED = replace(RULES, broker_follows=True)


@dataclass(slots=True, kw_only=True)
class BrokerWalk:
    """The group as a test has it now; `lag-aware` moves partition 1 to b and partition 3 to a."""

    held: Held = field(default_factory=lambda: {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}})
    lags: list[int | None] = field(default_factory=lambda: [900, 800, 10, 0])
    rules: Rules = FOLLOWED
    target: Held | None = None
    """What the broker wants; None for what members hold."""
    group_state: str = "Stable"
    epoch: int = 4
    target_epoch: int = 4
    stuck: frozenset[str] = frozenset()
    idle: frozenset[str] = frozenset()
    """Members that subscribe to nothing that exists."""
    assignors: Mapping[str, str] = field(default_factory=dict)
    orders: Orders | None = None
    now_ms: int = NOW_MS
    state: GroupState = FRESH
    published: Published | None = None

    def facts(self) -> GroupFacts:
        made = kip848_group(
            self.held,
            state=self.group_state,
            generation=self.epoch,
            target_epoch=self.target_epoch,
            assignor=None,
            orders=self.orders,
        )
        wanted = self.held if self.target is None else self.target
        return replace(
            made,
            members=tuple(
                replace(
                    one,
                    topics=() if one.member_id in self.idle else one.topics,
                    reconciliation=Reconciliation(
                        is_stuck=one.member_id in self.stuck,
                        server_assignor=self.assignors.get(one.member_id),
                        target=wanted.get(one.member_id, {}),
                    ),
                )
                for one in made.members
            ),
        )

    def decide(self, *, after_s: float = 0) -> Decision:
        """The decision after so many seconds; what it publishes is out."""
        self.now_ms += round(after_s * 1000)
        lags = partitions(self.lags, observed_at_ms=self.now_ms)
        decision = decide(self.facts(), lags, self.rules, self.published, self.state, now_ms=self.now_ms)
        self.state = from_json(to_json(decision.state))
        assert self.state == decision.state
        if decision.decided == "publish":
            self.published = out(decision)
        return decision

    def take(self, decision: Decision) -> None:
        """Let the broker make the plan its target assignment, of which no member knows yet."""
        self.aim(
            {
                member: {topic: parse_ranges(ranges, at_most=1000) for topic, ranges in topics.items()}
                for member, topics in (decision.assignment or {}).items()
            }
        )

    def aim(self, target: Held) -> None:
        """Let the broker make this its target assignment."""
        self.epoch += 1
        self.target, self.target_epoch, self.group_state = target, self.epoch, "Reconciling"

    def arrive(self) -> None:
        """Let every member have its target assignment."""
        assert self.target is not None
        self.held, self.target, self.group_state = self.target, None, "Stable"
        self.stuck = frozenset()
