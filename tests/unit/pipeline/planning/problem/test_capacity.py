"""How fast members are taken to be: learned while they have a backlog, optimistic where they never had one."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.model.group import LEAST_CAPACITY
from pipeline.planning.facts import MemberFacts
from pipeline.planning.problem.capacity import Load, believed, identities, learned
from pipeline.planning.problem.group import to_group
from pipeline.planning.state import FRESH, MemberRate
from tests.support.facts import NOW_MS, RULES, group, partitions
from tests.support.plan_walk import Walk

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
    lags = replace(partitions([900, 800, 10, 0]), drain_rate=np.array(drain_rate))

    found, _, _ = to_group(group(THREE), lags, RULES, FRESH, now_ms=NOW_MS)

    assert found.capacity is not None
    assert found.capacity.tolist() == expected


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
    behind = {"a": Load(rate=500, lag=90_000), "b": Load(rate=1000, lag=0)}
    rates = learned({}, behind, now_ms=NOW_MS)
    relieved = {"a": Load(rate=300, lag=0), "b": Load(rate=1200, lag=0)}

    rates = learned(rates, relieved, now_ms=NOW_MS + 60_000)

    assert capacities(rates, relieved, now_ms=NOW_MS)[0] == 500


def test_taker_that_falls_behind_is_believed_to_be_as_slow_as_it_is() -> None:
    first = {"a": Load(rate=500, lag=90_000), "b": Load(rate=1000, lag=0)}
    rates = learned({}, first, now_ms=NOW_MS)
    before = capacities(rates, first)[1]
    loaded = {"a": Load(rate=300, lag=0), "b": Load(rate=1050, lag=60_000)}

    rates = learned(rates, loaded, now_ms=NOW_MS + 60_000)

    assert (before, capacities(rates, loaded)[1]) == (2000, 1050)


def test_rate_that_rises_by_a_twentieth_a_minute_takes_nothing_back_that_was_shown() -> None:
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

    shown = [shown_by(walk, "a", after_s=s) for s in (60, 59)]

    assert shown == [10, 10]
    assert (shown_by(walk, "a", after_s=1) or 0) < 10


def test_member_that_has_just_come_back_is_not_taken_to_be_as_fast_as_others_read_its_partitions() -> None:
    """It reads what a and b read before, each at half of its own speed, and was away long enough for a backlog."""
    walk = Walk(
        held={"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}, lags=[0, 0, 0, 0], drain_rates=[4.0, 4.0, 4.0, 4.0]
    )
    walk.decide()
    walk.held, walk.generation = {"a": {"t": (0,)}, "b": {"t": (2,)}, "c": {"t": (1, 3)}}, 5
    walk.lags = [0, 90, 0, 90]

    assert [shown_by(walk, "c", after_s=s) for s in (60, 60, 59)] == [None, None, None]
    assert shown_by(walk, "c", after_s=1) == 8


def test_backlog_is_evidence_at_the_first_look_at_a_group() -> None:
    walk = Walk(held={"a": {"t": (0, 1)}}, lags=[90, 90], drain_rates=[4.0, 4.0])

    assert shown_by(walk, "a", after_s=0) == 8


def test_averages_with_a_longer_half_life_settle_later() -> None:
    walk = Walk(
        held={"a": {"t": (0,)}, "b": {"t": (1,)}},
        lags=[90, 0],
        drain_rates=[4.0, 4.0],
        rules=replace(RULES, half_life_ms=600_000),
    )
    assert shown_by(walk, "a", after_s=0) == 4
    walk.generation, walk.drain_rates = 5, [3.0, 4.0]

    shown = [shown_by(walk, "a", after_s=s) for s in (60, 599, 1)]

    assert shown == [4, 4, 3]


def test_busy_member_is_taken_to_be_like_those_that_show_their_limit() -> None:
    """In a group at nine tenths of its capacity nobody has room for twice as much."""
    loads = {"a": Load(rate=1000, lag=90_000), "b": Load(rate=900, lag=0), "c": Load(rate=1100, lag=0)}

    assert capacities(learned({}, loads, now_ms=NOW_MS), loads) == pytest.approx([1000, 1000, 1540])


def test_old_evidence_gives_way_to_optimism() -> None:
    loads = {"a": Load(rate=300, lag=0), "b": Load(rate=1000, lag=0)}
    rates = {
        "a": MemberRate(rate=300, shown=500, shown_at_ms=NOW_MS, seen_at_ms=NOW_MS),
        "b": MemberRate(rate=1000, seen_at_ms=NOW_MS),
    }

    after = [capacities(rates, loads, now_ms=NOW_MS + hours * HOUR_MS)[0] for hours in (0, 6, 600)]

    assert after == pytest.approx([500, 575, 650])


def test_rate_that_still_rises_is_no_limit_yet() -> None:
    """A burst meets a member whose moving average has to climb for minutes before it shows the capacity."""
    calm = {"a": Load(rate=300, lag=0)}
    rates = learned({}, calm, now_ms=NOW_MS)
    climbing, there = {"a": Load(rate=600, lag=50_000)}, {"a": Load(rate=620, lag=50_000)}

    rising = learned(rates, climbing, now_ms=NOW_MS + 60_000)
    steady = learned(rising, there, now_ms=NOW_MS + 120_000)

    assert rising["a"].shown is None
    assert steady["a"].shown == 620


def test_member_that_was_away_for_days_is_forgotten_and_one_that_restarts_is_not() -> None:
    loads = {"a": Load(rate=500, lag=90_000), "b": Load(rate=1000, lag=0)}
    rates = learned({}, loads, now_ms=NOW_MS)
    alone = {"b": loads["b"]}

    after_hours = learned(rates, alone, now_ms=NOW_MS + 5 * HOUR_MS)
    after_days = learned(after_hours, alone, now_ms=NOW_MS + 8 * 24 * HOUR_MS)

    assert after_hours["a"].shown == 500
    assert set(after_days) == {"b"}


def test_stuck_member_has_the_least_capacity_that_there_is() -> None:
    loads = {"a": Load(rate=1e-310, lag=90_000)}

    assert capacities(learned({}, loads, now_ms=NOW_MS), loads) == [LEAST_CAPACITY]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([("1", "i1", "c", "/h"), ("2", "i2", "c", "/h")], ["instance i1", "instance i2"]),
        ([("1", None, "c1", "/h"), ("2", None, "c2", "/h")], ["client c1", "client c2"]),
        ([("1", None, "c", "/h1"), ("2", None, "c", "/h2")], ["client c /h1", "client c /h2"]),
        ([("1", None, "c", "/h"), ("2", None, "c", "/h")], ["member 1", "member 2"]),
    ],
    ids=["static", "own client ids", "one client id on several hosts", "nothing that tells them apart"],
)
def test_member_is_remembered_by_what_outlives_its_restart(
    members: list[tuple[str, str | None, str, str]], expected: list[str]
) -> None:
    facts = [
        MemberFacts(member_id=name, instance_id=instance, client_id=client, client_host=host)
        for name, instance, client, host in members
    ]

    assert list(identities(facts)) == expected


def test_giver_that_does_not_keep_up_yet_is_neither_evidence_nor_taken_to_drain_twice_as_much() -> None:
    shown = {"a": Load(rate=50, lag=90_000), "b": Load(rate=100, lag=1_000_000, is_settled=False)}
    rates = learned({}, shown, now_ms=NOW_MS)

    assert rates["b"].shown is None
    assert capacities(rates, shown) == [50, 100]
    settled = {"a": shown["a"], "b": replace(shown["b"], is_settled=True)}
    assert capacities(learned(rates, settled, now_ms=NOW_MS + 120_000), settled) == [50, 100]
