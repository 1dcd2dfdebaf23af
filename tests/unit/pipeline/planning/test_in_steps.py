"""Plans within the share of partitions that may move: a large target is reached in steps."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from pipeline.config.model import GuardsConfig
from pipeline.planning.facts import AckFacts, Rules
from pipeline.planning.state import FRESH
from pipeline.planning.step import guard_limits
from pipeline.planning.values import Decision
from tests.support.planning.alone import decide
from tests.support.planning.facts import NO_GUARDS, NOW_MS, RULES, group, partitions
from tests.support.planning.plan_walk import Held, Walk

_CAPACITY = 2_000.0
_MINUTE_S = 60.0
_DEFAULTS = replace(RULES, strategy="lag-sticky", guards=guard_limits(GuardsConfig()), migration="disabled")


@dataclass(slots=True, kw_only=True)
class World:
    """Members of 2,000 records/s that take every plan at once."""

    walk: Walk
    plans: list[Decision]

    @classmethod
    def of(cls, held: Held, lags: list[int], rules: Rules, *, arrival_rate: float = 1.0) -> "World":
        n = len(lags)
        return cls(
            walk=Walk(held=held, lags=[*lags], rules=rules, arrival_rates=[arrival_rate] * n), plans=[]
        )

    def run(self, minutes: int) -> None:
        for _ in range(minutes):
            self._drain()
            decision = self.walk.decide(after_s=_MINUTE_S)
            if decision.decided == "publish":
                self.plans.append(decision)
                self.walk.apply(decision)
                epoch = decision.epoch or 0
                self.walk.acks = tuple(
                    AckFacts(kind="applied", member_id=member, epoch=epoch) for member in self.walk.held
                )

    def counts(self) -> list[int]:
        return sorted(len(held.get("t", ())) for held in self.walk.held.values())

    def _drain(self) -> None:
        """Every member works off its partitions evenly for a minute."""
        lag = np.array(self.walk.lags, float)
        arriving = np.array(self.walk.arrival_rates)
        drained = np.zeros(len(lag))
        for held in self.walk.held.values():
            own = np.array(held.get("t", ()), int)
            work = lag[own] + arriving[own] * _MINUTE_S
            if (total := work.sum()) > 0:
                drained[own] = work * min(1.0, _CAPACITY * _MINUTE_S / total)
        self.walk.lags = [int(left) for left in lag + arriving * _MINUTE_S - drained]
        self.walk.drain_rates = (drained / _MINUTE_S).tolist()


def all_on_a(partitions: int) -> Held:
    return {"a": {"t": tuple(range(partitions))}, "b": {}, "c": {}, "d": {}}


@pytest.mark.parametrize("strategy", ["lag-sticky", "cooperative-sticky", "range", "roundrobin"])
def test_two_hundred_partitions_of_one_member_are_shared_out_in_steps_each_better_than_before(
    strategy: str,
) -> None:
    world = World.of(all_on_a(200), [100_000] * 200, replace(_DEFAULTS, strategy=strategy), arrival_rate=4.0)

    world.run(60)

    assert len(world.plans) >= 3
    most = 20 if strategy == "lag-sticky" else 30
    for plan in world.plans:
        assert 0 < len(plan.moves) <= most
        assert (plan.figures.drain_s_after or np.inf) <= (plan.figures.drain_s_before or np.inf)
    assert world.counts()[-1] < 120


def test_plan_of_kip_169_is_published_whole() -> None:
    world = World.of(
        all_on_a(800), [100_000] * 800, replace(_DEFAULTS, strategy="lag-aware"), arrival_rate=2.0
    )

    world.run(10)

    first = world.plans[0]
    assert len(first.moves) == 600
    assert "later plans make the others" not in (first.reason or "")
    assert world.counts() == [200] * 4


def test_max_moves_above_the_share_is_capped_by_it() -> None:
    rules = replace(_DEFAULTS, options={"max_moves": 20, "floor_s": 30})
    world = World.of(all_on_a(60), [300_000] * 60, rules)

    world.run(5)

    assert [len(plan.moves) for plan in world.plans][:1] == [6]


def test_what_an_operator_triggers_may_use_all_of_max_moves() -> None:
    rules = replace(_DEFAULTS, options={"max_moves": 20})
    world = World.of(all_on_a(60), [300_000] * 60, rules)
    world.walk.order(triggered_at_ms=world.walk.now_ms)

    world.run(1)

    assert [len(plan.moves) for plan in world.plans] == [20]


@pytest.mark.parametrize("options", [{"counts": "even"}, {"count_cap": 15}], ids=str)
def test_counts_that_are_asked_for_are_reached_over_several_plans(options: dict[str, object]) -> None:
    world = World.of(all_on_a(60), [300_000] * 60, replace(_DEFAULTS, options=options))

    world.run(90)

    assert world.counts() == [15] * 4
    assert all(len(plan.moves) <= 6 for plan in world.plans)


def test_partitions_without_an_owner_are_no_moves() -> None:
    held = {"a": {"t": tuple(range(20))}, "b": {"t": tuple(range(20, 40))}}
    world = World.of(held, [50_000] * 60, _DEFAULTS)

    world.run(3)

    assert len(world.plans) == 1
    assert sum(move.from_member is None for move in world.plans[0].moves) == 20


def test_numbers_of_a_join_move_whole_or_not_at_all() -> None:
    guards = replace(NO_GUARDS, moves_share=0.1)
    world = World.of(
        all_on_a(100), [1_000] * 100, replace(_DEFAULTS, strategy="sticky-stream-join", guards=guards)
    )

    decision = world.walk.decide()

    assert decision.decided == "publish"
    assert len(decision.moves) == 30
    assert "a step of 30 of 75 moves (moves_share = 0.1); later plans make the others" in (
        decision.reason or ""
    )


@pytest.mark.parametrize("of_c", [(), (4,)], ids=["its number would move", "another number would"])
def test_partition_without_an_owner_joins_its_number_at_once_where_no_number_may_move(
    of_c: tuple[int, ...],
) -> None:
    """40 topics of up to 6 partitions, of which 30 may move in all: fewer than one number has."""
    n = 4 + 2 * len(of_c)
    topics = tuple(f"t{number:02d}" for number in range(40))
    numbers = {"a": (0, 1), "b": (2, 3, *range(5, n)), "c": of_c}
    held = {name: {topic: own for topic in topics if own} for name, own in numbers.items()}
    held["b"]["t00"] = tuple(number for number in numbers["b"] if number != 3)
    facts = group(held)
    facts = replace(facts, members=tuple(replace(one, topics=topics) for one in facts.members))
    lags = replace(
        partitions([1000] * 40 * n),
        topic=[topic for topic in topics for _ in range(n)],
        partition=np.tile(np.arange(n), 40),
    )
    rules = replace(RULES, strategy="sticky-stream-join", guards=replace(NO_GUARDS, moves_share=0.1))

    decision = decide(facts, lags, rules, None, FRESH, now_ms=NOW_MS)

    assert decision.decided == "publish"
    assert [(m.topic, m.partition, m.from_member, m.to_member) for m in decision.moves] == [
        ("t00", 3, None, "b")
    ]
    assert decision.reason == (
        f"{40 if of_c else 39} moves of whole partition numbers wait for later plans or a larger moves_share (0.1)"
    )
