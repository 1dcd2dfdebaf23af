"""Members that stand still: nothing is given to them and nothing taken, and what was moved for it comes back."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.model.arrays import Int32s
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.state import FRESH
from pipeline.planning.values import Decision
from tests.benchmarks.worlds.followers import Offer
from tests.benchmarks.worlds.policies import Lagwise
from tests.benchmarks.worlds.run import Outcome, run
from tests.benchmarks.worlds.scenario import FRAME_S, Scenario
from tests.benchmarks.worlds.scenarios import drawn
from tests.benchmarks.worlds.scenarios.parts import HOUR, plain
from tests.benchmarks.worlds.scenarios.pauses import stopped
from tests.benchmarks.worlds.view import View
from tests.benchmarks.worlds.world import World
from tests.support.planning.alone import decide
from tests.support.planning.facts import NOW_MS, committing, group
from tests.unit.pipeline.planning.test_no_harm import DEFAULTS, KEEPS_UP

MINUTE = 60 // FRAME_S
ARRIVING = [10.0] * 4 + [90.0] * 4 + [20.0] * 4
"""A has the most time to spare, then c; b receives 360 records/s, of which it drains 300."""
DRAINED = [10.0] * 4 + [75.0] * 4 + [20.0] * 4
OF_A = np.arange(12) < 4


def seen(
    minute: int, *, a_stands_still: bool, of_a: float = 10.0, b_is_behind: int = 20_000
) -> PartitionFacts:
    """B is behind, and a, with so many records/s in each partition, has read nothing since the start, or keeps up."""
    at_ms, arriving = NOW_MS + 60_000 * minute, [of_a] * 4 + ARRIVING[4:]
    behind = [0] * 4 + [b_is_behind // 4 + 15 * 60 * minute] * 4 + [0] * 4
    all_commit = committing(
        arriving, drained=arriving[:4] + DRAINED[4:], behind=behind, every_s=10, observed_at_ms=at_ms
    )
    if not a_stands_still:
        return all_commit
    silent = committing(arriving, every_s=10, ago_s=60.0 * minute + 30, observed_at_ms=at_ms)
    columns = [
        name
        for name in PartitionFacts.__slots__
        if isinstance(getattr(silent, name), np.ndarray) and name not in {"incomparable", "commit_ahead_s"}
    ]
    chosen = {name: np.where(OF_A, getattr(silent, name), getattr(all_commit, name)) for name in columns}
    return replace(all_commit, **chosen)


def decided(*, minutes: int, a_stands_still: bool) -> Decision:
    """The first plan, or the last decision when there is none."""
    state = FRESH
    for minute in range(minutes):
        facts = seen(minute, a_stands_still=a_stands_still)
        decision = decide(group(KEEPS_UP), facts, DEFAULTS, None, state, now_ms=NOW_MS + 60_000 * minute)
        if decision.decided == "publish":
            break
        state = decision.state
    return decision


def test_member_in_an_outage_is_given_nothing_and_left_everything() -> None:
    decision = decided(minutes=4, a_stands_still=True)

    assert {(move.from_member, move.to_member) for move in decision.moves} == {("b", "c")}
    assert "member a reads nothing now and is given nothing and left everything" in (decision.reason or "")


def test_member_in_an_outage_is_left_everything_though_it_is_further_behind_than_anybody() -> None:
    """A leaves 400 records/s unread; b is a little behind, and drains more than it receives."""
    of_b = (np.arange(12) >= 4) & (np.arange(12) < 8)
    state, moved = FRESH, []
    for minute in range(4):
        facts = seen(minute, a_stands_still=True, of_a=100.0, b_is_behind=6_000)
        rates = {name: np.where(of_b, 100.0, getattr(facts, name)) for name in ("commit_rate", "drain_rate")}
        facts = replace(facts, **rates)
        decision = decide(group(KEEPS_UP), facts, DEFAULTS, None, state, now_ms=NOW_MS + 60_000 * minute)
        state = decision.state
        moved.append({move.from_member for move in decision.moves})

    # It is first seen to stand still at the second decision, and waited for until the fourth.
    assert "a" not in moved[1] | moved[2]
    assert "a" in moved[3]


def test_same_member_is_given_something_while_it_reads() -> None:
    assert "a" in {move.to_member for move in decided(minutes=4, a_stands_still=False).moves}


def test_member_that_has_stood_still_for_longer_than_two_minutes_is_relieved() -> None:
    """B keeps up here, so that there is nobody else to relieve."""
    state, relieved = FRESH, []
    for minute in range(9):
        facts = seen(minute, a_stands_still=True)
        facts = replace(facts, commit_rate=facts.arrival_rate, drain_rate=facts.arrival_rate)
        facts = replace(facts, lag_at_commit=facts.lag_at_commit * OF_A, least_lag=facts.least_lag * OF_A)
        decision = decide(group(KEEPS_UP), facts, DEFAULTS, None, state, now_ms=NOW_MS + 60_000 * minute)
        state = decision.state
        relieved.append({move.from_member for move in decision.moves} == {"a"})

    assert not any(relieved[:3])
    assert any(relieved[3:])


@pytest.mark.parametrize(("pause_s", "still_s"), [(600, 600), (601, 0), (172_800, 0)])
def test_member_that_stands_still_before_and_after_a_long_pause_has_not_stood_still_for_so_long(
    pause_s: int, still_s: int
) -> None:
    """Its newest commits repeat one offset both times; what it read in between nobody has seen."""
    state = FRESH
    for at_ms in (NOW_MS, now_ms := NOW_MS + 1000 * pause_s):
        facts = committing(
            [10.0] * 12, drained=[0.0] * 4 + [10.0] * 8, behind=[500] * 4 + [0] * 8, observed_at_ms=at_ms
        )
        state = decide(group(KEEPS_UP), facts, DEFAULTS, None, state, now_ms=at_ms).state

    since_ms = {name: rate.still_since_ms for name, rate in state.rates.items() if rate.still_since_ms}
    assert since_ms == {"client client-a": now_ms - 1000 * still_s}


class _Watched(Lagwise):
    """lagwise, with where partitions were last, and where they have been."""

    def __init__(self) -> None:
        super().__init__()
        self.owners_seen: list[Int32s] = []

    def look(self, world: World, view: View) -> Offer | Int32s | None:
        self.owners_seen.append(view.owner.copy())
        return super().look(world, view)


def _calm(hours: int = 1) -> Scenario:
    """Three members that keep up, and no noise."""
    return plain(np.random.default_rng(7), use=0.5, hours=hours, members=(3, 3))


def _outcome(scenario: Scenario) -> tuple[Outcome, _Watched]:
    policy = _Watched()
    return run(scenario, policy), policy


def test_load_that_was_moved_away_because_of_an_outage_comes_back_when_that_is_over() -> None:
    scenario = stopped(_calm(), 1, slice(5 * MINUTE, 17 * MINUTE), hung=False)

    outcome, policy = _outcome(scenario)

    before = scenario.range_owners(0)
    assert outcome.plans >= 2
    assert any((owner[before == 1] != 1).any() for owner in policy.owners_seen)
    np.testing.assert_array_equal(policy.owners_seen[-1], before)


@pytest.mark.parametrize("hung", [False, True])
def test_short_outages_of_changing_members_end_with_the_assignment_that_there_was(*, hung: bool) -> None:
    """Eight minutes each: longer than anybody is waited for, and once two minutes, which moves nothing."""
    scenario = _calm(hours=2)
    for number, (begun, length) in enumerate([(5, 8), (20, 8), (35, 2), (45, 8)]):
        frames = slice(begun * MINUTE, (begun + length) * MINUTE)
        scenario = stopped(scenario, number % 3, frames, hung=hung)

    outcome, policy = _outcome(scenario)

    assert scenario.frames == 2 * HOUR
    assert outcome.plans >= (0 if hung else 2)
    np.testing.assert_array_equal(policy.owners_seen[-1], scenario.range_owners(0))


def test_member_that_could_not_answer_while_it_hung_is_relieved_when_it_reads_again() -> None:
    """Others had accepted a plan that needed it; whoever does not follow is planned around for an hour."""
    scenario = drawn("one pause of 10 minutes", 1)
    (slot,) = np.flatnonzero(scenario.hung.any(axis=0))
    over = int(np.flatnonzero(scenario.hung[:, slot])[-1]) + 1

    _, policy = _outcome(scenario)

    its = scenario.range_owners(0) == slot
    assert all((owner[its] == slot).all() for owner in policy.owners_seen[:over])
    assert any((owner[its] != slot).any() for owner in policy.owners_seen[over : over + 5 * MINUTE])
