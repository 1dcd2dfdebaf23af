"""lagwise's planning as the stream calls it: the only module of this package that knows its signatures."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from assignor.model.arrays import Bools, Int32s
from assignor.protocol.commands import Orders
from assignor.protocol.control import ControlRecord, decode
from pipeline.config.model import PlanConfig, RatesConfig
from pipeline.planning.facts import (
    AckFacts,
    GroupFacts,
    MemberFacts,
    PartitionFacts,
    Rules,
)
from pipeline.planning.memory import PlanMemory
from pipeline.planning.rows.partitions import up_to_readable
from pipeline.planning.state import FRESH, UNSEEN_MS, PlanState, from_json, to_json
from pipeline.planning.step import guard_limits
from pipeline.planning.values import Decision, Published
from tests.benchmarks.worlds.followers import Offer
from tests.benchmarks.worlds.observer import START_MS, Observer
from tests.benchmarks.worlds.scenario import Scenario
from tests.benchmarks.worlds.view import View
from tests.support.planning.alone import decide

_CONFIG = PlanConfig()
_GROUP = "g"
_CLUSTER = "local"


@dataclass(slots=True, kw_only=True, eq=False)
class Planner:
    """lagwise with its default configuration, but publishing, for one group on brokers that do not migrate it."""

    scenario: Scenario
    memory: PlanMemory = field(default_factory=PlanMemory)
    reasons: dict[str, int] = field(default_factory=dict)
    """What was decided, and why, by number of evaluations."""
    plan: PlanState | None = None
    """The newest, as the newest decision leaves it."""
    judged: PlanState | None = None
    """The newest before that decision, and what became of it."""
    plans: int = 0
    """Publications that move something, less those of a plan that goes on."""
    _rules: Rules = field(init=False)
    _orders: Orders | None = field(init=False)
    _topics: list[str] = field(init=False)
    _number_of: Int32s = field(init=False)

    def __post_init__(self) -> None:
        scenario = self.scenario
        own = _CONFIG.for_group(_GROUP)
        self._rules = Rules(
            cluster=_CLUSTER,
            strategy=own.strategy,
            options=own.options,
            auto_offset_reset=own.auto_offset_reset,
            exclude=own.exclude,
            dry_run=False,
            max_staleness_ms=_CONFIG.max_staleness_s * 1000,
            valid_for_ms=_CONFIG.valid_for_s * 1000,
            max_record_bytes=1_000_000,
            half_life_ms=RatesConfig().half_life_s * 1000,
            unseen_ms=UNSEEN_MS,
            guards=guard_limits(own.guards),
            least_epoch=1,
            migration="disabled",
        )
        self._topics = [f"t{topic}" for topic in scenario.topic_of]
        self._number_of = scenario.number_of
        pinned = self._by_topic(scenario.pinned)
        self._orders = (
            Orders(cluster=_CLUSTER, group=_GROUP, pinned=pinned, by="operator") if pinned else None
        )

    def is_due(self, view: View, now_s: float) -> bool:
        """Whether the batch of now decides about the group."""
        now_ms = START_MS + round(now_s * 1000)
        interval_ms = _CONFIG.interval_s * 1000
        is_waiting = self.memory.rebalanced({_GROUP: view.generation})
        return self.memory.is_evaluation_due(now_ms, interval_ms=interval_ms) or bool(is_waiting)

    def decide(self, view: View, seen: Observer) -> Offer | None:
        """What is published now, if anything."""
        now_ms, memory = seen.at_ms, self.memory
        if memory.is_evaluation_due(now_ms, interval_ms=_CONFIG.interval_s * 1000):
            memory.evaluated_at_ms = now_ms
        decision = decide(
            self._group(view),
            self._partitions(seen),
            self._rules,
            memory.published.get(_GROUP),
            from_json(memory.states[_GROUP]) if _GROUP in memory.states else FRESH,
            now_ms=now_ms,
        )
        before = from_json(memory.states.get(_GROUP)).plan
        memory.states[_GROUP] = to_json(decision.state)
        self.plan, self.judged = decision.state.plan, decision.plan
        self._note(decision)
        if decision.decided != "publish":
            return None
        memory.published[_GROUP] = Published(
            epoch=decision.epoch or 0,
            target_hash=decision.target_hash or "",
            base_hash=decision.base_hash or "",
            valid_until_ms=decision.valid_until_ms or 0,
        )
        after = decision.state.plan
        is_new = before is None or after is None or before.published_at_ms != after.published_at_ms
        self.plans += is_new and bool(decision.moves)
        return self._offer(decision, view)

    def _note(self, decision: Decision) -> None:
        # Numbers differ from evaluation to evaluation; what follows the second remark is detail.
        parts = re.sub(r"[0-9][0-9.,]*", "#", decision.reason or "").split("; ")
        reason = "; ".join(parts[:2])
        key = f"{decision.decided}: {reason}" if reason else decision.decided
        self.reasons[key] = self.reasons.get(key, 0) + 1

    def _group(self, view: View) -> GroupFacts:
        names = tuple(dict.fromkeys(self._topics))
        members = tuple(
            MemberFacts(
                member_id=member_id,
                client_id=f"client-{slot:02}",
                client_host=f"/10.0.0.{slot}",
                topics=names,
                assigned=self._by_topic(view.owner == slot),
            )
            for slot, member_id in view.member_ids.items()
        )
        acks = tuple(
            AckFacts(kind=kind, member_id=view.member_ids[slot], epoch=epoch)
            for slot, (kind, epoch) in sorted(view.acks.items())
            if slot in view.member_ids
        )
        return GroupFacts(
            group_id=_GROUP,
            group_type="classic",
            state="Stable" if view.is_stable else "PreparingRebalance",
            protocol_type="consumer",
            assignor="range",
            generation=view.generation,
            members=members,
            acks=acks,
            orders=self._orders,
        )

    def _partitions(self, seen: Observer) -> PartitionFacts:
        pace = seen.pace
        facts = PartitionFacts(
            topic=self._topics,
            partition=self._number_of.astype(np.int64),
            committed=seen.committed,
            log_start=seen.log_start,
            log_end=seen.log_end,
            observed_at_ms=np.full(len(seen.log_end), seen.at_ms),
            arrival_rate=seen.arrival_rate,
            drain_rate=seen.drain_rate,
            lag_age_s=seen.age_s,
            lag_at_commit=seen.lag_at_commit,
            commit_age_s=seen.commit_age_s,
            commit_interval_s=pace.interval_s,
            commit_rate=pace.rate,
            commit_span_s=pace.span_s,
            least_lag=pace.least_lag,
        )
        return up_to_readable(facts, seen.readable, seen.last_stable)

    def _by_topic(self, chosen: Bools) -> dict[str, tuple[int, ...]]:
        placed: dict[str, list[int]] = {}
        for index in np.flatnonzero(chosen).tolist():
            placed.setdefault(self._topics[index], []).append(int(self._number_of[index]))
        return {topic: tuple(numbers) for topic, numbers in placed.items()}

    def _offer(self, decision: Decision, view: View) -> Offer:
        epoch = decision.epoch or 0
        if decision.record is None:
            return Offer(epoch=epoch, generation=view.generation, target=None)
        record = decode(decision.record.encode())
        slots = {member_id: slot for slot, member_id in view.member_ids.items()}
        return Offer(
            epoch=epoch,
            generation=record.base_generation,
            target=self._slots(record, slots, of="target"),
            base=self._slots(record, slots, of="base"),
            valid_until_s=(record.valid_until_ms - START_MS) / 1000,
        )

    def _slots(self, record: ControlRecord, slots: Mapping[str, int], *, of: str) -> Int32s:
        """Slot of each partition by the record's base or target; -1 for none."""
        place = {
            name: index for index, name in enumerate(zip(self._topics, self._number_of.tolist(), strict=True))
        }
        owner = np.full(len(place), -1, np.int32)
        for member_id, member in record.members.items():
            placed: Mapping[str, Sequence[int]] = getattr(member, of)
            for topic, numbers in placed.items():
                owner[[place[topic, number] for number in numbers]] = slots[member_id]
        return owner
