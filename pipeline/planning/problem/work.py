"""Records as work: a record that costs more than an ordinary one counts as several.

Where costs are known (`costs`), lag, arrivals and speeds are in records of ordinary cost before anything is believed of
members. Elsewhere they are what they were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from assignor.model.arrays import Floats, Int64s
from assignor.model.topics import Topics
from pipeline.planning.problem.costs import LEAST_SPELLS, Shown, costs
from pipeline.planning.problem.load import Load
from pipeline.planning.progress import left_of
from pipeline.planning.readings import Spell
from pipeline.planning.state import MemberRate


def record_costs(
    rates: Sequence[MemberRate],
    topics: Topics,
    arriving: Floats,
    told: Mapping[str, tuple[float, int]],
    *,
    cold_ms: int,
) -> Floats | None:
    """P entries: work per record, in ordinary records; None where all cost the same as far as is known.

    Args:
        rates: Those of the present members.
        topics: The group's.
        arriving: P entries, records/s: what a spell's records were, as nothing better is remembered.
        told: `reading.costs_told` of this decision.
        cold_ms: See `group.posed`.
    """
    found = _learned(rates, topics, arriving, cold_ms)
    if not told:
        return found
    cost = np.ones(topics.n_partitions) if found is None else found
    for key, (times, _) in told.items():
        topic, number = key.rsplit(":", 1)
        cost[left_of(topics, {topic: number})] = times
    return cost if (cost != 1.0).any() else None


def _learned(rates: Sequence[MemberRate], topics: Topics, arriving: Floats, cold_ms: int) -> Floats | None:
    """Costs learned from members' spells (`costs`); None if all cost the same."""
    if sum(len(rate.spells) for rate in rates) < LEAST_SPELLS or not any(rate.spells[1:] for rate in rates):
        return None
    shown = [
        Shown(member=number, speed=warm.speed, share=share)
        for number, rate in enumerate(rates)
        for spell in rate.spells
        if (warm := spell.warm(cold_ms)) is not None
        if (share := _share(spell, topics, arriving)) is not None
    ]
    found = costs(shown, topics.n_partitions)
    return found if (found != 1.0).any() else None


def in_work(
    loads: Mapping[str, Load], held: Sequence[Int64s], drained: Floats, backlog: Floats
) -> dict[str, Load]:
    """The loads with rate and lag in ordinary records.

    Args:
        loads: By identity, in the order of `held`.
        held: Indices of each member's partitions.
        drained: P entries, ordinary records/s.
        backlog: P entries, ordinary records.
    """
    return {
        name: replace(load, rate=float(drained[own].sum()), lag=float(backlog[own].sum()))
        for (name, load), own in zip(loads.items(), held, strict=True)
    }


def shown_in_work(rate: MemberRate, topics: Topics, arriving: Floats, cost: Floats) -> MemberRate:
    """What a member has shown, in ordinary records/s."""
    if rate.shown is None or not rate.spells:
        return rate
    share = _share(rate.spells[-1], topics, arriving)
    return rate if share is None else replace(rate, shown=rate.shown * float((share * cost).sum()))


def _share(spell: Spell, topics: Topics, arriving: Floats) -> Floats | None:
    """P entries: share of the spell's records by partition; None if none of its partitions is there any more."""
    share = np.zeros(topics.n_partitions)
    share[left_of(topics, spell.held)] = 1.0
    weighted: Floats = share * arriving
    total = float(weighted.sum())
    if total > 0:
        return weighted / total
    return share / share.sum() if share.any() else None


def expensive(topics: Topics, cost: Floats | None) -> list[tuple[str, float]]:
    """Partitions that are known to cost more, by name, with how many ordinary records one of theirs is; worst first."""
    if cost is None:
        return []
    order = np.argsort(-cost, kind="stable")
    dear = order[cost[order] > 1.0]
    return [
        (f"{topics.names[topics.topic_of[p]]}-{int(topics.number_of[p])}", float(cost[p]))
        for p in dear.tolist()
    ]
