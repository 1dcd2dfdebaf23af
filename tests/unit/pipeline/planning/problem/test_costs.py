"""A partition is expensive if slowness has moved with it, and a member is slow if slowness has stayed."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.model.topics import Topics
from pipeline.planning.problem.costs import Shown, costs
from pipeline.planning.problem.work import expensive, record_costs
from pipeline.planning.readings import Spell
from pipeline.planning.state import FRESH, MemberRate
from tests.support.planning.alone import to_problem
from tests.support.planning.facts import NOW_MS, RULES, committing, group

N = 9


def shown(member: int, speed: float, *held: int) -> Shown:
    """A speed with these partitions, of which as many records come from each."""
    share = np.zeros(N)
    share[[*held]] = 1 / len(held)
    return Shown(member=member, speed=speed, share=share)


MOVED_WITH_IT = [
    shown(0, 444, 0, 1, 2, 3),
    shown(0, 1000, 1, 2, 3),
    shown(1, 500, 0, 4, 5, 6, 7),
    shown(1, 1000, 4, 5, 6, 7),
]
"""Partition 0 costs six times what others cost; both members do 1,000 ordinary records/s."""


def test_slowness_that_has_moved_with_a_partition_is_the_partitions() -> None:
    found = costs(MOVED_WITH_IT, N)

    assert found[0] == pytest.approx(6, rel=0.15)
    assert found[1:].tolist() == [1.0] * (N - 1)


def test_speed_of_members_that_differ_does_not_hide_what_a_partition_costs() -> None:
    found = costs(
        [
            shown(one.member, one.speed * (3 if one.member else 1), *np.flatnonzero(one.share))
            for one in MOVED_WITH_IT
        ],
        N,
    )

    assert found[0] == pytest.approx(6, rel=0.25)
    assert found[1:].tolist() == [1.0] * (N - 1)


def test_slowness_that_stays_with_a_member_is_the_members() -> None:
    found = costs(
        [
            shown(0, 300, 0, 1, 2, 3),
            shown(0, 300, 1, 2, 3),
            shown(1, 1000, 4, 5, 6),
            shown(1, 1000, 0, 4, 5, 6),
        ],
        N,
    )

    assert found.tolist() == [1.0] * N


def test_member_that_recovers_after_it_gave_a_partition_away_is_no_cost() -> None:
    found = costs(
        [
            shown(0, 300, 0, 1, 2, 3),
            shown(0, 1000, 1, 2, 3),
            shown(1, 1000, 4, 5, 6),
            shown(1, 1000, 0, 4, 5, 6),
        ],
        N,
    )

    assert found.tolist() == [1.0] * N


def test_partition_that_only_one_member_has_read_is_as_dear_as_others() -> None:
    found = costs([shown(0, 444, 0, 1, 2, 3), shown(0, 1000, 1, 2, 3), shown(1, 1000, 4, 5)], N)

    assert found.tolist() == [1.0] * N


def test_partition_that_nobody_was_seen_without_is_as_dear_as_others() -> None:
    """Both of its readers may be slow."""
    slow = [shown(0, 200, 0), shown(1, 200, 0)]
    fast = [shown(member, 1000, member) for member in (2, 3, 4, 5)]

    found = costs([*slow, *fast], N)

    assert found.tolist() == [1.0] * N


@pytest.mark.parametrize(("speed", "is_said"), [(625, False), (300, True)])
def test_cost_below_twice_that_of_others_is_not_told_from_noise(speed: float, *, is_said: bool) -> None:
    found = costs([shown(0, speed, 0), shown(0, 1000, 1), shown(1, speed, 0), shown(1, 1000, 4)], N)

    assert (found[0] > 1) == is_said


def test_two_spells_tell_nothing_apart() -> None:
    assert costs(MOVED_WITH_IT[:2], N).tolist() == [1.0] * N


TOPICS = Topics.of({"t": N})


def rate(*spells: tuple[float, str]) -> MemberRate:
    """A member that has shown these speeds with these ranges of partitions."""
    made = tuple(
        Spell(held={"t": held}, speeds=(speed,), at_ms=NOW_MS - 60_000 * (len(spells) - n))
        for n, (speed, held) in enumerate(spells)
    )
    return MemberRate(
        rate=0, shown=made[-1].speed, shown_at_ms=made[-1].at_ms, spells=made, seen_at_ms=NOW_MS
    )


RATES = [rate((444, "0-3"), (1000, "1-3")), rate((1000, "4-7"), (500, "0,4-7"))]


@pytest.mark.parametrize(
    ("held_s", "is_known"), [((), True), ((59,), False), ((60,), True)], ids=["unknown", "cold", "warm"]
)
def test_speed_that_a_member_showed_with_cold_caches_tells_nothing_of_costs(
    held_s: tuple[int, ...], is_known: bool
) -> None:
    held_ms = tuple(one * 1000 for one in held_s)
    rates = [replace(one, spells=tuple(replace(own, held_ms=held_ms) for own in one.spells)) for one in RATES]

    assert (record_costs(rates, TOPICS, np.ones(N), {}, cold_ms=60_000) is not None) == is_known


def test_speed_of_a_spell_that_began_cold_is_that_of_its_warm_part() -> None:
    spell = Spell(held={}, speeds=(100.0, 100.0, 400.0), held_ms=(20_000, 50_000, 80_000), at_ms=0)

    warm = spell.warm(60_000)

    assert warm is not None
    assert (warm.speed, spell.speed, spell.warm(90_000)) == (400, 100, None)


def test_costs_are_learned_from_the_spells_of_members_and_named_by_partition() -> None:
    cost = record_costs(RATES, TOPICS, np.ones(N), {}, cold_ms=0)

    assert cost is not None
    ((name, times),) = expensive(TOPICS, cost)
    assert (name, times) == ("t-0", pytest.approx(6, rel=0.15))


def test_partitions_that_are_gone_and_members_that_never_changed_theirs_show_no_cost() -> None:
    gone = [rate((444, "70-73"), (1000, "71-73")), rate((1000, "74"), (500, "70,74"))]
    unchanged = [rate((444, "0-3")), rate((1000, "4-6")), rate((1000, "7-8"))]

    assert record_costs(gone, TOPICS, np.ones(N), {}, cold_ms=0) is None
    assert record_costs(unchanged, TOPICS, np.ones(N), {}, cold_ms=0) is None
    assert expensive(TOPICS, None) == []


def test_what_costs_more_counts_as_so_many_ordinary_records() -> None:
    """B reads 500/s with the dear one among five: that is the work of 1,000, and as much as a does."""
    facts = group({"a": {"t": (1, 2, 3)}, "b": {"t": (0, 4, 5, 6, 7, 8)}})
    names = [f"client client-{name}" for name in ("a", "b")]
    state = type(FRESH)(generation=4, since_ms=1, rates=dict(zip(names, RATES, strict=True)))

    problem, _ = to_problem(facts, committing([100.0] * N), RULES, state, now_ms=NOW_MS)

    assert problem.cost is not None
    assert problem.group.rate.tolist() == pytest.approx([100 * problem.cost[0], *[100.0] * 8])
    assert problem.group.capacity is not None
    assert problem.group.capacity.tolist() == pytest.approx([1000, 1000], rel=0.15)


def test_spells_of_a_larger_group_are_read_for_what_is_left_of_it() -> None:
    spells = [
        Spell(held={"t": held}, speeds=(speed,), at_ms=1)
        for held, speed in (("0-4", 4.0), ("0-3", 9.0), ("5-8", 9.0))
    ]
    rates = [
        MemberRate(rate=1.0, seen_at_ms=1, spells=tuple(spells[:2])),
        MemberRate(rate=1.0, seen_at_ms=1, spells=(spells[2],)),
    ]

    assert record_costs(rates, Topics(names=("t",), counts=np.array([2])), np.ones(2), {}, cold_ms=0) is None
