"""Readings of members that are behind, and the costs that they tell."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from assignor.model.topics import Topics
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.load import Load
from pipeline.planning.problem.reading import costs_told, with_readings
from pipeline.planning.problem.work import record_costs
from pipeline.planning.readings import Readings
from pipeline.planning.state import FRESH, MemberRate, from_json, to_json
from tests.support.planning.facts import NOW_MS, committing

BEHIND = Load(rate=1.0, lag=1e6, shows=1.0)
CALM = Load(rate=1.0, lag=0.0)


def facts(minute: int, rates: list[float], *, every_s: float = 30.0) -> PartitionFacts:
    """Of a member that is behind in all, at a decision each minute."""
    made = committing(rates, behind=[100_000] * len(rates), every_s=every_s)
    at_ms = NOW_MS + 60_000 * minute
    committed = (np.array(rates) * 60 * minute).astype(np.int64)
    return replace(made, committed=committed, observed_at_ms=np.full(len(rates), at_ms))


def member(readings: Readings | None = None) -> MemberRate:
    return MemberRate(rate=1.0, seen_at_ms=NOW_MS, readings=readings)


def after(decisions: int, *, held: Sequence[int] = (0, 1), load: Load = BEHIND) -> Readings | None:
    """Of a member that reads the same all the time."""
    rates = {"a": member()}
    for minute in range(decisions):
        rates = with_readings(rates, {"a": load}, [np.array(held)], facts(minute, [10.0, 20.0, 30.0]))
    return rates["a"].readings


def test_each_decision_reads_from_the_commit_of_the_last_one_to_the_newest() -> None:
    readings = after(3)

    assert readings is not None
    assert readings.of == ("t:0", "t:1")
    assert readings.rates == ((10.0, 20.0),) * 5
    assert readings.behind == ((1, 1),) * 5


def test_only_a_member_that_is_behind_has_readings() -> None:
    assert after(3, load=CALM) is None


def test_member_that_has_lost_a_partition_goes_on_and_one_that_has_got_one_begins_anew() -> None:
    rates, more = {"a": member(after(3))}, {"a": member(after(3, held=(0, 1, 2)))}

    (lost,) = with_readings(more, {"a": BEHIND}, [np.array([0, 1])], facts(3, [10.0, 20.0, 30.0])).values()
    (kept,) = with_readings(rates, {"a": BEHIND}, [np.array([0, 1])], facts(3, [10.0, 20.0, 30.0])).values()
    (got,) = with_readings(rates, {"a": BEHIND}, [np.array([0, 1, 2])], facts(3, [10.0, 20.0, 30.0])).values()

    assert [one.readings and len(one.readings.rates) for one in (lost, kept, got)] == [6, 7, 1]


def test_break_in_what_it_shows_makes_the_next_reading_begin_at_its_own_commits() -> None:
    known = after(2)
    (calm,) = with_readings(
        {"a": member(known)}, {"a": CALM}, [np.array([0, 1])], facts(2, [10.0, 20.0])
    ).values()
    (again,) = with_readings({"a": calm}, {"a": BEHIND}, [np.array([0, 1])], facts(3, [10.0, 20.0])).values()

    assert calm.readings is not None
    assert not calm.readings.marks
    assert again.readings is not None
    assert len(again.readings.rates) == 4


def test_what_slows_most_members_at_once_is_no_reading() -> None:
    names = ("a", "b", "c", "d")
    held = [np.array([p, p + 1]) for p in (0, 2, 4, 6)]
    rates = {name: member() for name in names}

    def found(behind: int) -> int:
        loads = {name: BEHIND if n < behind else CALM for n, name in enumerate(names)}
        read = with_readings(rates, loads, held, facts(0, [10.0] * 8))
        return sum(one.readings is not None for one in read.values())

    assert [found(n) for n in (1, 2, 3, 4)] == [1, 2, 0, 0]


def test_group_has_readings_of_eight_members_at_most_and_of_those_that_go_on_first() -> None:
    names = [f"m{n:02}" for n in range(20)]
    held = [np.array([p, p + 1]) for p in range(0, 40, 2)]
    rates = {name: member() for name in names}

    for first in (0, 5, 10):
        loads = {name: BEHIND if first <= n < first + 5 else CALM for n, name in enumerate(names)}
        rates = with_readings(rates, loads, held, facts(first, [10.0] * 40))
    everybody = with_readings(rates, dict.fromkeys(names, BEHIND), held, facts(11, [10.0] * 40))

    assert [name for name, one in rates.items() if one.readings is not None] == names[7:15]
    assert [name for name, one in everybody.items() if one.readings is not None] == names[7:15]


def told_of(cost: float) -> Readings:
    """Of a member that is behind in partition 0, whose records cost so much."""
    others = 100 * np.random.default_rng(0).lognormal(0.0, 0.1, (20, 3))
    rows = np.column_stack([(1000 - others.sum(axis=1)) / cost, others])
    return Readings(
        of=("t:0", "t:1", "t:2", "t:3"),
        rates=tuple(map(tuple, rows.tolist())),
        behind=((1, 0, 0, 0),) * 20,
        marks=((0, 0, 0),) * 4,
    )


def test_cost_is_remembered_for_six_hours_after_it_was_told_last() -> None:
    found = costs_told({}, {"a": member(told_of(5.0))}, 4, now_ms=NOW_MS)
    hours = [costs_told(found, {"a": member()}, 4, now_ms=NOW_MS + h * 3_600_000) for h in (1, 5, 6)]

    assert found == {"t:0": (pytest.approx(5, rel=0.1), NOW_MS)}
    assert hours == [found, found, {}]


def test_cost_that_readings_tell_counts_with_what_spells_say() -> None:
    topics = Topics.of({"t": 4})

    assert record_costs([], topics, np.ones(4), {}) is None
    found = record_costs([], topics, np.ones(4), {"t:2": (5.0, NOW_MS), "gone:0": (3.0, NOW_MS)})
    assert found is not None
    assert found.tolist() == [1.0, 1.0, 5.0, 1.0]


def test_readings_and_costs_survive_as_text() -> None:
    state = replace(FRESH, rates={"a": member(told_of(5.0))}, costs={"t:0": (5.0, NOW_MS)})

    assert from_json(to_json(state)) == state
