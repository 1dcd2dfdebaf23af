"""The array form of a group, as decisions take it."""

import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assignor.errors import AbstainError
from assignor.model.arrays import Floats, Int64s
from assignor.model.group import Group
from assignor.model.members import Member, build_group, claims_of
from assignor.model.topics import Topics
from assignor.protocol.ranges import parse_ranges
from pipeline.lag.lag import UNKNOWN
from pipeline.planning import reasons
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules
from pipeline.planning.problem.capacity import (
    Belief,
    as_limits,
    believed,
    identities,
    is_given_up,
    learned,
)
from pipeline.planning.problem.evidence import Evidence, EvidenceAsked
from pipeline.planning.problem.load import Before, Load
from pipeline.planning.problem.reading import costs_told, with_readings
from pipeline.planning.problem.work import in_work, record_costs, shown_in_work
from pipeline.planning.state import GroupState, PlanState


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """The group as a strategy is asked about it, and what is believed of it."""

    group: Group
    """Its lag is the backlog (`backlog.backlog`). Lag, rates and capacities are in work (`work`)."""
    backlog: Int64s
    """P entries, records."""
    cost: Floats | None
    """P entries: see `work.record_costs`."""
    beliefs: dict[str, Belief]
    """How fast each member id is taken to be; empty while nobody has shown anything."""
    standing: frozenset[str]
    """Members that read nothing now though they could, and are not given up yet."""
    resumed: frozenset[str]
    """Members that read again, and stood still at the decision before."""


def posed(
    facts: GroupFacts,
    partitions: PartitionFacts,
    rules: Rules,
    state: GroupState,
    *,
    cold_ms: int,
    now_ms: int,
) -> Generator[EvidenceAsked, Evidence, tuple[Problem, GroupState]]:
    """The array form of the group: what each member was given in its generation is what it owns.

    Args:
        facts: See `decide.deciding`.
        partitions: See `decide.deciding`.
        rules: See `decide.deciding`.
        state: See `decide.deciding`.
        cold_ms: How long a member may read slowly with cold caches after it got partitions (`price.cold_ms`): what it
            reads in that time shows nobody's cost, and no limit of a member that keeps up.
        now_ms: Time of the decision.

    Yields:
        The question for the evidence, once.

    Returns:
        The problem, and the state with what members have shown by now.

    Raises:
        AbstainError: A topic's partition numbers are not contiguous, or a lag is unknown.
    """
    topics, names = _topics(partitions), identities(facts.members)
    generation = facts.generation if facts.generation is not None else -1
    claims = claims_of(
        topics, [member.assigned for member in facts.members], [generation] * len(facts.members)
    )
    held = claims.of_each(len(facts.members))
    before = _before(facts, names, rules, state, now_ms=now_ms)
    found = yield EvidenceAsked(
        partitions=partitions, auto_offset_reset=rules.auto_offset_reset, held=held, before=before
    )
    _require_known(found.lag, partitions)
    behind, loads = found.backlog, dict(zip(names, found.loads, strict=True))
    warm = [
        (one.member_id, known.given_ms + cold_ms if cold_ms else known.changed_ms)
        for one, known in zip(facts.members, before, strict=True)
    ]
    rates = with_readings(learned(state.rates, loads, now_ms=now_ms), loads, held, partitions, warm)
    told = costs_told(state, {name: rates[name] for name in names}, topics.n_partitions, now_ms=now_ms)
    arriving = np.fmax(partitions.arrival_rate, 0.0)
    cost = record_costs([rates[name] for name in names], topics, arriving, told, cold_ms=cold_ms)
    limits = as_limits(rates, loads, cold_ms=cold_ms)
    behind_ms = max((now_ms - at_ms for at_ms in state.behind_since.values()), default=0)
    if cost is None:
        beliefs = believed(limits, loads, now_ms=now_ms, behind_ms=behind_ms)
    else:
        shown = {name: shown_in_work(limits[name], topics, arriving, cost) for name in names}
        worked = in_work(loads, held, np.fmax(partitions.drain_rate, 0.0) * cost, behind * cost)
        beliefs = believed(shown, worked, now_ms=now_ms, behind_ms=behind_ms)
    weight: float | Floats = 1.0 if cost is None else cost
    id_of = {name: member.member_id for name, member in zip(names, facts.members, strict=True)}
    problem = Problem(
        group=build_group(
            topics=topics,
            members=_members(facts, generation, beliefs),
            claims=claims,
            lag=np.rint(behind * weight).astype(np.int64),
            rate=arriving * weight,
        ),
        backlog=behind,
        cost=cost,
        beliefs=dict(zip(id_of.values(), beliefs, strict=True)) if beliefs else {},
        standing=frozenset(
            id_of[name]
            for name, load in loads.items()
            if load.stands_still and not is_given_up(rates[name], now_ms=now_ms)
        ),
        resumed=frozenset(id_of[name] for name in _resumed(loads, state)),
    )
    return problem, replace(state, rates=rates, costs=told)


def _resumed(loads: Mapping[str, Load], state: GroupState) -> Iterator[str]:
    for name, load in loads.items():
        if not load.stands_still and name in state.rates and state.rates[name].still_since_ms:
            yield name


def _before(
    facts: GroupFacts, names: Sequence[str], rules: Rules, state: GroupState, *, now_ms: int
) -> list[Before]:
    """What is known of each member from before."""
    unsettled = _unsettled(facts, rules, state, now_ms=now_ms)
    changed_ms = _changed_ms(facts, state, now_ms=now_ms)
    known = [state.rates.get(name) for name in names]
    return [
        Before(
            changed_ms=at_ms,
            given_ms=max(at_ms, _given_ms(state, member.member_id)),
            is_settled=member.member_id not in unsettled,
            calm_s=math.nan if rate is None or rate.calm_s is None else rate.calm_s,
            committed_ms=rate.committed_ms if rate is not None else 0,
            held=member.assigned,
        )
        for member, at_ms, rate in zip(facts.members, changed_ms, known, strict=True)
    ]


def _given_ms(state: GroupState, member_id: str) -> int:
    """When a plan gave the member partitions, while its taking them is watched; else 0."""
    taker = state.takers.get(member_id)
    return taker.since_ms if taker is not None else 0


def _members(facts: GroupFacts, generation: int, beliefs: Sequence[Belief] | None) -> list[Member]:
    return [
        Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            topics=member.topics,
            owned=member.assigned,
            generation=generation,
            capacity=beliefs[number].capacity if beliefs is not None else None,
        )
        for number, member in enumerate(facts.members)
    ]


def _changed_ms(facts: GroupFacts, state: GroupState, *, now_ms: int) -> list[int]:
    """When each member has got other partitions last, as far as decisions saw it."""
    plan = state.plan
    # The moves of an open plan are counted later in this decision.
    has_moved = plan is not None and (plan.done > 0 or (plan.status == "open" and _has_moved(facts, plan)))
    if plan is None or not has_moved:
        return [state.rebalanced_at_ms] * len(facts.members)
    moved_ms = now_ms if plan.status == "open" else plan.status_at_ms
    concerned = {*plan.revoked, *plan.receivers}
    return [
        max(state.rebalanced_at_ms, moved_ms if member.member_id in concerned else 0)
        for member in facts.members
    ]


def _has_moved(facts: GroupFacts, plan: PlanState) -> bool:
    """Whether a member holds less than all of what the plan revokes from it."""
    return any(
        not set(parse_ranges(ranges, at_most=plan.moves)) <= set(member.assigned.get(topic, ()))
        for member in facts.members
        for topic, ranges in plan.revoked.get(member.member_id, {}).items()
    )


def _unsettled(facts: GroupFacts, rules: Rules, state: GroupState, *, now_ms: int) -> frozenset[str]:
    """Members of whose present work less than half shows in their averages: averages are kept by partition.

    After a rebalance these are all members, which besides have read nothing for a while; after a plan those that it
    takes something from.
    """
    if now_ms - state.rebalanced_at_ms < rules.half_life_ms:
        return frozenset(member.member_id for member in facts.members)
    plan = state.plan
    if plan is None or now_ms - plan.sent_at_ms >= rules.half_life_ms:
        return frozenset()
    return frozenset(plan.revoked)


def _topics(partitions: PartitionFacts) -> Topics:
    topics = partitions.topics or Topics.of(Counter(partitions.topic))
    if not np.array_equal(topics.number_of, partitions.partition):
        first = int((topics.number_of != partitions.partition).argmax())
        raise AbstainError(reasons.partitions_not_contiguous(partitions.topic[first]))
    return topics


def _require_known(lag: Int64s, partitions: PartitionFacts) -> None:
    if (lag == UNKNOWN).any():
        first = int((lag == UNKNOWN).argmax())
        raise AbstainError(reasons.lag_unknown(f"{partitions.topic[first]}-{partitions.partition[first]}"))
