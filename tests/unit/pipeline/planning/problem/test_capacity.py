"""How fast members are taken to be: learned while they have a backlog, optimistic where they never had one."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from assignor.model.group import LEAST_CAPACITY
from pipeline.planning.facts import MemberFacts
from pipeline.planning.problem.capacity import as_limits, believed, identities, is_given_up, learned
from pipeline.planning.problem.load import Load
from pipeline.planning.readings import Spell
from pipeline.planning.state import FRESH, MemberRate
from tests.support.planning.alone import to_problem
from tests.support.planning.facts import NOW_MS, RULES, draining, group, partitions
from tests.support.planning.plan_walk import Walk

THREE = {"a": {"t": (0, 1)}, "b": {"t": (2,)}, "c": {"t": (3,)}}
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("drain_rate", "expected"),
    [
        ([5.0, 5.0, 60.0, 4.0], [10.0, 120.0, 32.0]),
        ([5.0, 5.0, np.nan, 4.0], [10.0, 10.0, 10.0]),
        ([40.0, 40.0, 60.0, 4.0], [80.0, 80.0, 80.0]),
    ],
    ids=["slow member has the backlog", "never seen to drain", "fast member has the backlog"],
)
def test_member_that_keeps_up_has_headroom_and_is_no_slower_than_a_typical_one(
    drain_rate: list[float], expected: list[float]
) -> None:
    lags = draining(partitions([900, 800, 10, 0]), drain_rate)

    problem, _ = to_problem(group(THREE), lags, RULES, FRESH, now_ms=NOW_MS)

    assert problem.group.capacity is not None
    assert problem.group.capacity.tolist() == expected


def behind(rate: float, lag: float, *, after_s: float = 0, **changes: object) -> Load:
    """A member that drains so much with a backlog, as its commits of `after_s` show."""
    shows: dict[str, object] = {"shows": rate, "shows_at_ms": NOW_MS + round(after_s * 1000)}
    return Load(rate=rate, lag=lag, **{**shows, **changes})  # type: ignore[arg-type]  # the tests know their types


def capacities(rates: dict[str, MemberRate], loads: dict[str, Load], *, now_ms: int = NOW_MS) -> list[float]:
    beliefs = believed(rates, loads, now_ms=now_ms)
    assert beliefs is not None
    return [belief.capacity for belief in beliefs]


def shown_by(walk: Walk, name: str, *, after_s: float) -> float | None:
    rates = walk.decide(after_s=after_s).state.rates
    return next(rate.shown for identity, rate in rates.items() if identity.endswith(name))


def test_nobody_who_has_a_backlog_leaves_capacities_unknown() -> None:
    loads = {"a": Load(rate=10, lag=50), "b": Load(rate=0, lag=10_000)}

    assert believed(learned({}, loads, now_ms=NOW_MS), loads, now_ms=NOW_MS) is None


def test_what_was_shown_is_remembered_when_the_backlog_is_gone() -> None:
    rates = learned({}, {"a": behind(500, 90_000), "b": Load(rate=1000, lag=0)}, now_ms=NOW_MS)
    relieved = {"a": Load(rate=300, lag=0), "b": Load(rate=1200, lag=0)}

    rates = learned(rates, relieved, now_ms=NOW_MS + 60_000)

    assert capacities(rates, relieved, now_ms=NOW_MS)[0] == 500


def test_taker_that_falls_behind_is_believed_to_be_as_slow_as_it_is() -> None:
    first = {"a": behind(500, 90_000), "b": Load(rate=1000, lag=0)}
    rates = learned({}, first, now_ms=NOW_MS)
    before = capacities(rates, first)[1]
    loaded = {"a": Load(rate=300, lag=0), "b": behind(1050, 60_000, after_s=60)}

    rates = learned(rates, loaded, now_ms=NOW_MS + 60_000)

    assert (before, capacities(rates, loaded)[1]) == (2000, 1050)


def test_moving_average_under_a_backlog_takes_nothing_back_that_was_shown() -> None:
    known = {"a": MemberRate(rate=760, shown=1000, shown_at_ms=NOW_MS, seen_at_ms=NOW_MS)}

    rates = learned(known, {"a": Load(rate=800, lag=60_000)}, now_ms=NOW_MS + 60_000)

    assert rates["a"].shown == 1000


def test_giver_is_not_taken_to_be_as_slow_as_it_read_the_rest_before_the_plan() -> None:
    walk = Walk(
        held={"a": {"t": (0, 1, 2)}, "b": {"t": (3,)}},
        lags=[600, 600, 600, 0],
        drain_rates=[4.0, 3.0, 3.0, 9.0],
    )
    walk.apply(walk.decide())
    given = walk.state.plan
    assert given is not None
    assert set(given.revoked) == {"a"}
    walk.drain_rates = [4.0, 4.0, 4.0, 4.0]

    # Its commits are half a minute apart: only from then on both are of what it has kept.
    assert [shown_by(walk, "a", after_s=s) for s in (60, 29, 1)] == [10, 10, 8]


def test_member_that_has_just_come_back_is_not_taken_to_be_as_fast_as_others_read_its_partitions() -> None:
    """It reads what a and b read before, each at half of its own speed, and was away long enough for a backlog."""
    walk = Walk(
        held={"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, lags=[0, 0, 0, 0], drain_rates=[4.0, 4.0, 4.0, 4.0]
    )
    walk.decide()
    walk.held, walk.generation = {"a": {"t": (0,)}, "b": {"t": (2,)}, "c": {"t": (1, 3)}}, 5
    walk.lags = [0, 90, 0, 90]

    assert [shown_by(walk, "c", after_s=s) for s in (60, 29, 1)] == [None, None, 8]


def test_backlog_is_evidence_at_the_first_look_at_a_group() -> None:
    walk = Walk(held={"a": {"t": (0, 1)}}, lags=[90, 90], drain_rates=[4.0, 4.0])

    assert shown_by(walk, "a", after_s=0) == 8


def test_busy_member_is_taken_to_be_like_those_that_show_their_limit() -> None:
    """In a group at nine tenths of its capacity nobody has room for twice as much."""
    loads = {"a": behind(1000, 90_000), "b": Load(rate=900, lag=0), "c": Load(rate=1100, lag=0)}

    assert capacities(learned({}, loads, now_ms=NOW_MS), loads) == pytest.approx([1000, 1000, 1540])


def test_old_evidence_gives_way_to_optimism() -> None:
    loads = {"a": Load(rate=300, lag=0), "b": Load(rate=1000, lag=0)}
    rates = {
        "a": MemberRate(rate=300, shown=500, shown_at_ms=NOW_MS, seen_at_ms=NOW_MS),
        "b": MemberRate(rate=1000, seen_at_ms=NOW_MS),
    }

    after = [capacities(rates, loads, now_ms=NOW_MS + hours * HOUR_MS)[0] for hours in (0, 6, 600)]

    assert after == pytest.approx([500, 575, 650])


def test_member_that_was_away_for_days_is_forgotten_and_one_that_restarts_is_not() -> None:
    loads = {"a": behind(500, 90_000), "b": Load(rate=1000, lag=0)}
    rates = learned({}, loads, now_ms=NOW_MS)
    alone = {"b": loads["b"]}

    after_hours = learned(rates, alone, now_ms=NOW_MS + 5 * HOUR_MS)
    after_days = learned(after_hours, alone, now_ms=NOW_MS + 8 * 24 * HOUR_MS)

    assert after_hours["a"].shown == 500
    assert set(after_days) == {"b"}


def test_stuck_member_has_the_least_capacity_that_there_is() -> None:
    loads = {"a": behind(1e-310, 90_000)}

    assert capacities(learned({}, loads, now_ms=NOW_MS), loads) == [LEAST_CAPACITY]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([("1", "i1", "c", "/h"), ("2", "i2", "c", "/h")], ["instance i1", "instance i2"]),
        ([("1", None, "c1", "/h"), ("2", None, "c2", "/h")], ["client c1", "client c2"]),
        ([("1", None, "c", "/h1"), ("2", None, "c", "/h2")], ["client c /h1", "client c /h2"]),
        ([("1", None, "c", "/h"), ("2", None, "c", "/h")], ["member 1", "member 2"]),
        (
            [("1", None, "c", "/h1"), ("2", None, "c", "/h2"), ("3", None, "c /h1", "/h3")],
            ["member 1", "client c /h2", "member 3"],
        ),
        ([("1", "i", "c 1", "/h"), ("2", None, "instance i", "/h")], ["instance i", "client instance i"]),
    ],
    ids=[
        "static",
        "own client ids",
        "one client id on several hosts",
        "nothing that tells them apart",
        "client id of one is that of another with its host",
        "client id of one is as another's identity",
    ],
)
def test_member_is_remembered_by_what_outlives_its_restart(
    members: list[tuple[str, str | None, str, str]], expected: list[str]
) -> None:
    facts = [
        MemberFacts(member_id=name, instance_id=instance, client_id=client, client_host=host)
        for name, instance, client, host in members
    ]

    assert list(identities(facts)) == expected


def test_no_two_members_share_an_identity_whatever_their_clients_call_themselves() -> None:
    clients, hosts = ("c", "c /h", "c /h /h", "c ", "", None), ("/h", "/h /h", " /h", "", None)
    facts = [
        MemberFacts(member_id=f"m{number}", client_id=client, client_host=host)
        for number, (client, host) in enumerate(product(clients, hosts))
    ]

    for some in combinations(facts, 3):
        assert len(set(identities(some))) == 3


def test_giver_that_does_not_keep_up_yet_is_neither_evidence_nor_taken_to_drain_twice_as_much() -> None:
    shown = {"a": behind(50, 90_000), "b": Load(rate=100, lag=1_000_000, is_settled=False)}
    rates = learned({}, shown, now_ms=NOW_MS)

    assert rates["b"].shown is None
    assert capacities(rates, shown) == [50, 100]
    settled = {"a": shown["a"], "b": behind(100, 1_000_000, after_s=120)}
    assert capacities(learned(rates, settled, now_ms=NOW_MS + 120_000), settled) == [50, 100]


def after_speeds(*speeds: float, every_s: float = 60, **held: tuple[int, ...]) -> MemberRate:
    """What member a has shown after these speeds in a row, with the partitions 0-3."""
    rates: dict[str, MemberRate] = {}
    for n, speed in enumerate(speeds):
        load = behind(speed, 90_000, after_s=n * every_s, held=held or {"t": (0, 1, 2, 3)})
        rates = learned(rates, {"a": load}, now_ms=NOW_MS + round(n * every_s * 1000))
    return rates["a"]


@pytest.mark.parametrize(
    ("speeds", "shown"),
    [
        ((400.0,), 400),
        ((1000.0, 400.0), 1000),
        ((1000.0, 400.0, 1010.0), 1000),
        ((1000.0, 400.0, 410.0), 410),
        ((1000.0, 1000.0, 400.0, 410.0), 410),
    ],
    ids=["the only one", "cut by a pause", "and after it", "it has become slow", "whatever was before"],
)
def test_member_is_as_fast_as_the_middle_of_its_three_newest_speeds(
    speeds: tuple[float, ...], shown: float
) -> None:
    assert after_speeds(*speeds).shown == shown


def test_speed_that_is_seen_again_between_two_commits_counts_once() -> None:
    assert after_speeds(1000, 400, 400, 400, every_s=9).spells[-1].speeds == (1000, 400)


def test_each_spell_has_the_partitions_with_which_its_speeds_were_shown() -> None:
    rates = {"a": after_speeds(1000, 990)}
    for n, held in enumerate([(0, 1), (0, 1), (0, 1, 2, 3)]):
        at_s = 120 + 60 * n
        load = behind(500 + n, 90_000, after_s=at_s, held={"t": held, "u": ()})
        rates = learned(rates, {"a": load}, now_ms=NOW_MS + at_s * 1000)

    assert [(spell.held, spell.speeds) for spell in rates["a"].spells] == [
        ({"t": "0-3"}, (1000, 990)),
        ({"t": "0-1"}, (500, 501)),
        ({"t": "0-3"}, (502,)),
    ]
    assert rates["a"].shown == 502


def test_speeds_of_another_hour_are_another_spell_and_no_more_than_four_are_kept() -> None:
    assert [spell.speeds for spell in after_speeds(1, 2, 3, 4, 5, every_s=1800).spells] == [
        (2,),
        (3,),
        (4,),
        (5,),
    ]
    assert len(after_speeds(1, 2, every_s=1799).spells) == 1


def standing(minutes: int, *, reads: float) -> tuple[list[float], dict[str, MemberRate]]:
    """What is believed once a, which has shown 500/s, has stood still for so long beside b."""
    rates = learned({}, {"a": behind(500, 90_000), "b": Load(rate=reads, lag=0)}, now_ms=NOW_MS)
    still = {
        "a": Load(rate=100, lag=90_000, stands_still=True),
        "b": Load(rate=reads, lag=0, stands_still=reads == 0),
    }
    for minute in range(minutes + 1):
        now_ms = NOW_MS + (minute + 1) * 60_000
        rates = learned(rates, still, now_ms=now_ms)
    return capacities(rates, still, now_ms=now_ms), rates


def test_member_that_stands_still_is_as_fast_as_it_has_shown_for_two_minutes_and_then_given_up() -> None:
    assert [standing(minutes, reads=400)[0][0] for minutes in (0, 1, 2)] == [500, 500, LEAST_CAPACITY]


def test_beside_one_that_is_given_up_members_that_have_shown_nothing_are_alike_and_drain_twice_what_they_do() -> (
    None
):
    loads = {
        "a": Load(rate=100, lag=90_000, stands_still=True),
        **{name: Load(rate=rate, lag=0) for name, rate in (("b", 400), ("c", 500), ("d", 1_200))},
    }
    rates = learned({}, loads, now_ms=NOW_MS)
    assert believed(rates, loads, now_ms=NOW_MS + 119_999) is None

    beliefs = believed(rates, loads, now_ms=NOW_MS + 120_000)

    assert beliefs is not None
    assert [(one.capacity, one.is_shown) for one in beliefs] == [
        (LEAST_CAPACITY, True),
        (1_000, False),
        (1_000, False),
        (1_200, False),
    ]


def test_nothing_is_believed_where_nobody_reads_and_nobody_has_shown_anything() -> None:
    loads = {"a": Load(rate=0, lag=900, stands_still=True), "b": Load(rate=0, lag=900, stands_still=True)}
    rates = learned({}, loads, now_ms=NOW_MS)

    assert believed(rates, loads, now_ms=NOW_MS + 120_000) is None


def test_member_that_was_given_up_is_believed_again_at_once_when_it_reads() -> None:
    _, rates = standing(30, reads=400)
    again = {"a": Load(rate=100, lag=90_000), "b": Load(rate=400, lag=0)}
    now_ms = NOW_MS + 32 * 60_000

    rates = learned(rates, again, now_ms=now_ms)

    assert not is_given_up(rates["a"], now_ms=now_ms)
    assert capacities(rates, again, now_ms=now_ms)[0] == 500


def test_nobody_is_given_up_while_the_whole_group_stands_still() -> None:
    """What they all wait for is away, and no other owner reads a partition either."""
    capacity, rates = standing(30, reads=0)

    assert is_given_up(rates["a"], now_ms=NOW_MS + 31 * 60_000)
    assert capacity[0] == 500


def test_member_that_stands_still_shows_no_speed() -> None:
    lags = replace(draining(partitions([900]), [0.0]), commit_interval_s=np.array([10.0]))

    _, state = to_problem(group({"a": {"t": (0,)}}), lags, RULES, FRESH, now_ms=NOW_MS)

    assert [(rate.shown, rate.still_since_ms) for rate in state.rates.values()] == [(None, NOW_MS)]


def test_spell_of_two_speeds_is_the_faster_for_what_is_too_low_does_harm() -> None:
    assert Spell(held={}, speeds=(400, 1000), at_ms=0).speed == 1000


def test_member_is_as_fast_as_it_drains_now_until_its_averages_have_settled() -> None:
    """After a rebalance the average is of who read its partitions before."""
    known = {"a": MemberRate(rate=10, shown=10, shown_at_ms=NOW_MS, seen_at_ms=NOW_MS)}
    unsettled, settled = (
        {"a": Load(rate=12, lag=90_000, is_settled=is_settled)} for is_settled in (False, True)
    )

    assert [capacities(known, loads) for loads in (unsettled, settled)] == [[12], [10]]


def spell(speed: float, *, held_s: int, at_s: int) -> Spell:
    return Spell(held={}, speeds=(speed,), at_ms=NOW_MS + at_s * 1000, held_ms=(held_s * 1000,))


@pytest.mark.parametrize(
    ("spells", "expected"),
    [
        ((spell(900, held_s=900, at_s=-600), spell(300, held_s=60, at_s=-60)), 900),
        ((spell(300, held_s=60, at_s=-60),), None),
        ((spell(300, held_s=180, at_s=-60),), 300),
    ],
    ids=["warm before", "never warm", "warm now"],
)
def test_speed_with_cold_caches_is_no_limit_of_a_member_that_keeps_up(
    spells: tuple[Spell, ...], expected: float | None
) -> None:
    rate = MemberRate(rate=200, shown=300, shown_at_ms=NOW_MS, spells=spells, seen_at_ms=NOW_MS)

    warm = replace(rate, shown=500, spells=(spell(500, held_s=900, at_s=0),))
    loads = dict.fromkeys("ab", Load(rate=200, lag=0))

    limits = as_limits({"a": rate, "b": warm}, loads, cold_ms=180_000)

    assert [limits[name].shown for name in "ab"] == [expected, 500]


def test_speed_with_cold_caches_is_the_limit_of_a_member_that_is_behind() -> None:
    slow = MemberRate(rate=300, shown=300, spells=(spell(300, held_s=60, at_s=0),), seen_at_ms=NOW_MS)

    assert as_limits({"a": slow}, {"a": behind(300, 9_000)}, cold_ms=180_000) == {"a": slow}


def test_speed_counts_as_the_limit_where_moves_are_cheap() -> None:
    slow = MemberRate(rate=300, shown=300, spells=(spell(300, held_s=60, at_s=0),), seen_at_ms=NOW_MS)

    assert as_limits({"a": slow}, {"a": Load(rate=200, lag=0)}, cold_ms=0) == {"a": slow}


def test_cold_speeds_are_limits_where_nobody_has_shown_another() -> None:
    slow = MemberRate(rate=300, shown=300, spells=(spell(300, held_s=60, at_s=0),), seen_at_ms=NOW_MS)

    assert as_limits({"a": slow}, {"a": Load(rate=200, lag=0)}, cold_ms=180_000) == {"a": slow}
