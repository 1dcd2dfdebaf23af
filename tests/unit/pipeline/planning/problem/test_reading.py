"""Readings of members that are behind, and the costs that they tell."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from assignor.model.arrays import Int64s
from assignor.model.topics import Topics
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.load import Load
from pipeline.planning.problem.reading import costs_told, with_readings
from pipeline.planning.problem.work import record_costs
from pipeline.planning.readings import Readings
from pipeline.planning.state import FRESH, GroupState, MemberRate, from_json, to_json
from tests.support.planning.facts import NOW_MS, committing

BEHIND = Load(rate=1.0, lag=1e6, shows=1.0)
CALM = Load(rate=1.0, lag=0.0)


def facts(minute: int, rates: list[float], *, every_s: float = 30.0) -> PartitionFacts:
    """Of a member that is behind in all, at a decision each minute."""
    made = committing(rates, behind=[100_000] * len(rates), every_s=every_s)
    at_ms = NOW_MS + 60_000 * minute
    committed = (np.array(rates) * 60 * minute).astype(np.int64)
    return replace(made, committed=committed, observed_at_ms=np.full(len(rates), at_ms))


def read(
    rates: Mapping[str, MemberRate],
    loads: Mapping[str, Load],
    held: Sequence[Int64s],
    partitions: PartitionFacts,
    *,
    member_id: str = "m",
    changed_ms: int = 0,
) -> dict[str, MemberRate]:
    """`with_readings` of a group with a member besides that keeps up."""
    padded = {**rates, "calm": member()}
    others = {**loads, "calm": CALM}
    found = with_readings(
        padded, others, [*held, np.zeros(0, np.int64)], partitions, [(member_id, changed_ms)] * len(others)
    )
    return {name: rate for name, rate in found.items() if name != "calm"}


def member(readings: Readings | None = None) -> MemberRate:
    return MemberRate(rate=1.0, seen_at_ms=NOW_MS, readings=readings)


def after(decisions: int, *, held: Sequence[int] = (0, 1), load: Load = BEHIND) -> Readings | None:
    """Of a member that reads the same all the time."""
    rates = {"a": member()}
    for minute in range(decisions):
        rates = read(rates, {"a": load}, [np.array(held)], facts(minute, [10.0, 20.0, 30.0]))
    return rates["a"].readings


def test_each_decision_reads_from_the_commit_of_the_last_one_to_the_newest() -> None:
    readings = after(3)

    assert readings is not None
    assert readings.of == ("t:0", "t:1")
    assert readings.rates == ((10.0, 20.0),) * 5
    assert readings.behind == ((1, 1),) * 5


def test_commits_that_are_farther_apart_than_decisions_are_read_once() -> None:
    rates, counts = {"a": member()}, []
    for minute in range(3):
        rates = read(rates, {"a": BEHIND}, [np.array([0, 1])], facts(minute, [10.0, 20.0], every_s=90.0))
        assert rates["a"].readings is not None
        counts.append(len(rates["a"].readings.rates))

    # The second decision sees some of what the first has read; the third, what followed that and its own.
    assert counts == [1, 1, 3]


def test_only_a_member_that_is_behind_has_readings() -> None:
    assert after(3, load=CALM) is None


def test_member_that_has_lost_a_partition_goes_on_and_one_that_has_got_one_begins_anew() -> None:
    rates, more = {"a": member(after(3))}, {"a": member(after(3, held=(0, 1, 2)))}

    (lost,) = read(more, {"a": BEHIND}, [np.array([0, 1])], facts(3, [10.0, 20.0, 30.0])).values()
    (kept,) = read(rates, {"a": BEHIND}, [np.array([0, 1])], facts(3, [10.0, 20.0, 30.0])).values()
    (got,) = read(rates, {"a": BEHIND}, [np.array([0, 1, 2])], facts(3, [10.0, 20.0, 30.0])).values()

    assert [one.readings and len(one.readings.rates) for one in (lost, kept, got)] == [7, 7, 1]


@pytest.mark.parametrize(
    ("minute", "member_id", "kept"), [(2, "m", 5), (2, "restarted", 1), (5, "m", 1)], ids=str
)
def test_member_that_has_restarted_or_was_not_seen_for_minutes_begins_anew(
    minute: int, member_id: str, kept: int
) -> None:
    rates = {"a": member(after(2))}

    (found,) = read(
        rates, {"a": BEHIND}, [np.array([0, 1])], facts(minute, [10.0, 20.0]), member_id=member_id
    ).values()

    assert found.readings is not None
    assert len(found.readings.rates) == kept


def test_member_that_has_caught_up_and_one_that_has_left_have_no_readings() -> None:
    rates = {"a": member(after(2)), "left": member(after(2))}

    found = read(rates, {"a": CALM}, [np.array([0, 1])], facts(2, [10.0, 20.0]))

    assert [one.readings for one in found.values()] == [None, None]


def test_reading_over_a_rebalance_is_none() -> None:
    rates = {"a": member(after(2))}

    (found,) = read(
        rates, {"a": BEHIND}, [np.array([0, 1])], facts(2, [10.0, 20.0]), changed_ms=NOW_MS + 3_600_000
    ).values()

    assert found.readings is not None
    assert len(found.readings.rates) == 3
    assert found.readings.marks != rates["a"].readings.marks  # type: ignore[union-attr]  # it has some


@pytest.mark.parametrize(("log_start", "kept"), [(600, 5), (601, 1)])
def test_records_that_were_deleted_between_two_decisions_are_no_reading(log_start: int, kept: int) -> None:
    """At the edge of retention a member skips some again and again, as if it read them at once."""
    rates = {"a": member(after(2))}
    now = replace(facts(2, [10.0, 20.0]), log_start=np.array([log_start, 0]))

    readings = read(rates, {"a": BEHIND}, [np.array([0, 1])], now)["a"].readings

    assert readings is not None
    assert len(readings.rates) == kept


def test_what_slows_most_members_at_once_is_no_reading() -> None:
    names = ("a", "b", "c", "d")
    held = [np.array([p, p + 1]) for p in (0, 2, 4, 6)]
    rates = {name: member() for name in names}

    def found(behind: int) -> int:
        loads = {name: BEHIND if n < behind else CALM for n, name in enumerate(names)}
        found = with_readings(rates, loads, held, facts(0, [10.0] * 8), [("m", 0)] * 4)
        return sum(one.readings is not None for one in found.values())

    assert [found(n) for n in (1, 2, 3, 4)] == [1, 2, 0, 0]


@pytest.mark.parametrize(("behind", "with_some"), [(8, 8), (9, 0)])
def test_group_has_readings_of_eight_members_at_most(behind: int, with_some: int) -> None:
    names = [f"m{n:02}" for n in range(20)]
    held = [np.array([p, p + 1]) for p in range(0, 40, 2)]
    loads = {name: BEHIND if n < behind else CALM for n, name in enumerate(names)}

    found = with_readings(
        {name: member() for name in names}, loads, held, facts(0, [10.0] * 40), [("m", 0)] * 20
    )

    assert sum(one.readings is not None for one in found.values()) == with_some


def told_of(cost: float) -> Readings:
    """Of a member that is behind in partition 0, whose records cost so much."""
    others = 100 * np.random.default_rng(0).lognormal(0.0, 0.1, (20, 3))
    rows = np.column_stack([(1000 - others.sum(axis=1)) / cost, others])
    return Readings(
        member_id="m",
        of=("t:0", "t:1", "t:2", "t:3"),
        rates=tuple(map(tuple, rows.tolist())),
        behind=((1, 0, 0, 0),) * 20,
        marks=((0, 0, 0),) * 4,
        marks_of=("t:0", "t:1", "t:2", "t:3"),
    )


def costs_after(
    state: GroupState, rates: dict[str, MemberRate], *, hours: int = 0
) -> dict[str, tuple[float, int]]:
    return costs_told(state, rates, 4, now_ms=NOW_MS + hours * 3_600_000)


def test_cost_is_remembered_for_six_hours_after_it_was_told_last() -> None:
    found = costs_after(FRESH, {"a": member(told_of(5.0))})
    state = replace(FRESH, costs=found)

    assert found == {"t:0": (pytest.approx(5, rel=0.1), NOW_MS)}
    assert [costs_after(state, {"a": member()}, hours=hours) for hours in (-1, 1, 5, 6)] == [
        {},
        found,
        found,
        {},
    ]


def test_cost_is_not_told_again_by_what_was_read_before() -> None:
    rates = {"a": member(told_of(5.0))}
    state = replace(FRESH, costs={"t:0": (5.0, NOW_MS)}, rates=rates)

    assert costs_after(state, dict(rates), hours=5) == state.costs
    assert costs_after(state, dict(rates), hours=6) == {}


def test_cost_that_readings_tell_counts_with_what_spells_say() -> None:
    topics = Topics.of({"t": 4})

    assert record_costs([], topics, np.ones(4), {}, cold_ms=0) is None
    found = record_costs([], topics, np.ones(4), {"t:2": (5.0, NOW_MS), "gone:0": (3.0, NOW_MS)}, cold_ms=0)
    assert found is not None
    assert found.tolist() == [1.0, 1.0, 5.0, 1.0]


def test_readings_and_costs_survive_as_text() -> None:
    state = replace(FRESH, rates={"a": member(told_of(5.0))}, costs={"t:0": (5.0, NOW_MS)})

    assert from_json(to_json(state)) == state


@pytest.mark.parametrize(
    "change",
    [
        {"rates": [[1.0, 2.0, 3.0]]},
        {"rates": [[1.0, 2.0, 3.0, float("nan")]] * 20},
        {"rates": [[1.0, 2.0, 3.0, -4.0]] * 20},
        {"rates": [["1", "2", "3", "4"]] * 20},
        {"behind": [[1, 0, 0]] * 20},
        {"marks": [[0, 0]] * 4},
        {"marks": [[0, 0, 0]]},
        {"of": ["t:0"]},
    ],
    ids=str,
)
def test_damaged_readings_are_not_read(change: dict[str, object]) -> None:
    text = json.loads(to_json(replace(FRESH, rates={"a": member(told_of(5.0))})))
    text["rates"]["a"]["readings"] |= change

    assert from_json(json.dumps(text)).rates["a"].readings is None


@pytest.mark.parametrize(
    "costs",
    [
        {"t:0": [float("nan"), 1]},
        {"t:0": [float("inf"), 1]},
        {"t:0": [-5.0, 1]},
        {"t": [5.0, 1]},
        {"t:x": [5.0, 1]},
    ],
    ids=str,
)
def test_cost_that_cannot_be_is_not_read(costs: dict[str, object]) -> None:
    assert from_json(json.dumps({"costs": costs, "hurts": 3})) == replace(FRESH, hurts=3)


def test_state_that_is_nested_too_deeply_is_that_of_a_new_group() -> None:
    assert from_json("[" * 100_000 + "]" * 100_000) == FRESH


def test_state_whose_times_are_no_numbers_is_that_of_a_new_group() -> None:
    assert from_json('{"costs": {"t:0": [2.0, 1e999]}}') == FRESH
