"""A group over several decisions: what one leaves, the next one finds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from assignor.protocol.commands import Orders
from assignor.protocol.ranges import parse_ranges
from pipeline.planning.facts import AckFacts, Rules
from pipeline.planning.state import FRESH, GroupState, from_json, to_json
from pipeline.planning.values import Decision, Published
from tests.support.planning.alone import decide
from tests.support.planning.facts import NOW_MS, RULES, draining, group, partitions

Held = Mapping[str, Mapping[str, tuple[int, ...]]]

HALFWAY: Held = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
"""`walk` with one of its two moves made."""


@dataclass(slots=True, kw_only=True)
class Walk:
    """The group as a test has it now."""

    held: Held
    """Member id -> topic -> partitions that it holds."""
    lags: list[int | None]
    rules: Rules = RULES
    generation: int = 4
    assignor: str = "range"
    acks: tuple[AckFacts, ...] = ()
    orders: Orders | None = None
    leavers: frozenset[str] = frozenset()
    """Members that subscribe to nothing any more."""
    lag_age_s: float = 3600.0
    drain_rates: list[float] | None = None
    """Of each partition; None while nobody was seen to drain anything."""
    arrival_rates: list[float] | None = None
    """Of each partition; None for no arrivals."""
    unanswered: tuple[int, ...] = ()
    """Partitions whose leader lagwise cannot ask now."""
    now_ms: int = NOW_MS
    state: GroupState = FRESH
    published: Published | None = None

    def decide(self, *, after_s: float = 0) -> Decision:
        """The decision after so many seconds; what it publishes is out."""
        self.now_ms += round(after_s * 1000)
        facts = group(
            self.held, generation=self.generation, assignor=self.assignor, acks=self.acks, orders=self.orders
        )
        facts = replace(
            facts,
            members=tuple(
                replace(one, topics=()) if one.member_id in self.leavers else one for one in facts.members
            ),
        )
        lags = partitions(self.lags, observed_at_ms=self.now_ms)
        lags.lag_age_s[:] = self.lag_age_s
        if self.drain_rates is not None:
            lags = draining(lags, self.drain_rates)
        if self.arrival_rates is not None:
            lags.arrival_rate[:] = self.arrival_rates
        if self.unanswered:
            why = [
                "broker 2 does not answer" if p in self.unanswered else None for p in range(len(self.lags))
            ]
            lags = replace(lags, unanswered=why)
        decision = decide(facts, lags, self.rules, self.published, self.state, now_ms=self.now_ms)
        # Through the form in which a table keeps it.
        self.state = from_json(to_json(decision.state))
        assert self.state == decision.state
        if decision.decided == "publish":
            self.published = out(decision)
        return decision

    def order(self, **orders: object) -> None:
        """Let an operator say so, now."""
        self.orders = Orders(cluster="local", group="g", at_ms=self.now_ms, by="eva@desk", **orders)  # type: ignore[arg-type]  # the test knows their types

    def apply(self, decision: Decision) -> None:
        """Let every member hold what the decision gives it."""
        self.held = {
            member: {topic: parse_ranges(ranges, at_most=1000) for topic, ranges in topics.items()}
            for member, topics in (decision.assignment or {}).items()
        }


def walk() -> Walk:
    """Lag-aware moves partition 1 to b and partition 3 to a."""
    return Walk(held={"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, lags=[900, 800, 10, 0])


def out(decision: Decision) -> Published:
    """What is on the control topic once the decision is published."""
    assert decision.epoch is not None
    assert decision.target_hash is not None
    assert decision.base_hash is not None
    assert decision.valid_until_ms is not None
    return Published(
        epoch=decision.epoch,
        target_hash=decision.target_hash,
        base_hash=decision.base_hash,
        valid_until_ms=decision.valid_until_ms,
    )


def said(kind: str, *, epoch: int = 1, member: str = "a", why: str | None = None) -> AckFacts:
    """An acknowledgement in one line."""
    return AckFacts(kind=kind, member_id=member, epoch=epoch, why=why)
