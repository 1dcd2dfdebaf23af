"""Groups that plans once made worse, decided about with the defaults."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.config.model import GuardsConfig
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.state import FRESH, GroupState
from pipeline.planning.step import guard_limits
from pipeline.planning.values import Decision
from tests.support.planning.alone import decide
from tests.support.planning.facts import NOW_MS, RULES, committing, group

DEFAULTS = replace(RULES, strategy="lag-sticky", guards=guard_limits(GuardsConfig()), migration="disabled")
KEEPS_UP = {"a": {"t": (0, 1, 2, 3)}, "b": {"t": (4, 5, 6, 7)}, "c": {"t": (8, 9, 10, 11)}}
ARRIVING = [100.0] * 4 + [140.0] * 8


def decisions(
    held: dict[str, dict[str, tuple[int, ...]]], *seen: PartitionFacts, state: GroupState = FRESH
) -> list[Decision]:
    """One after another; nothing is published by them, or followed."""
    made = []
    for facts in seen:
        made.append(decide(group(held), facts, DEFAULTS, None, state, now_ms=int(facts.observed_at_ms[0])))
        state = made[-1].state
    return made


def minutes(n: int) -> list[int]:
    return [NOW_MS + 60_000 * minute for minute in range(n)]


def seconds_after_commits(ago_s: float, every_s: float, at_ms: int) -> PartitionFacts:
    """A has committed so long ago, the others a second ago; all keep up."""
    a = committing(ARRIVING, every_s=every_s, ago_s=ago_s, observed_at_ms=at_ms)
    others = committing(ARRIVING, every_s=1, ago_s=1, observed_at_ms=at_ms)
    is_of_a = np.arange(len(ARRIVING)) < 4
    columns = [
        name
        for name in PartitionFacts.__slots__
        if isinstance(getattr(a, name), np.ndarray) and name not in {"incomparable", "commit_ahead_s"}
    ]
    return replace(
        a, **{name: np.where(is_of_a, getattr(a, name), getattr(others, name)) for name in columns}
    )


@pytest.mark.parametrize("ago_s", [9, 11, 15])
def test_member_that_keeps_up_and_has_committed_seconds_ago_is_relieved_of_nothing(ago_s: float) -> None:
    made = decisions(KEEPS_UP, *(seconds_after_commits(ago_s, 15, at_ms) for at_ms in minutes(5)))

    assert [(one.decided, one.moves) for one in made] == [("unchanged", ())] * 5


@pytest.mark.parametrize("every_s", [1, 5, 15, 30, 60])
def test_group_that_keeps_up_gets_no_plan_however_seldom_it_commits(every_s: float) -> None:
    for share in (0, 0.5, 1, 1.4):
        facts = [seconds_after_commits(share * every_s, every_s, at_ms) for at_ms in minutes(5)]

        assert [one.moves for one in decisions(KEEPS_UP, *facts)] == [()] * 5


def test_member_that_is_slow_between_its_commits_is_relieved_however_seldom_it_commits() -> None:
    """Freezing would be no answer: a drains 200 of 400 records/s and is a quarter of an hour behind."""
    for every_s in (5, 60):
        facts = [
            committing(
                ARRIVING,
                drained=[50.0] * 4 + [140.0] * 8,
                behind=[45_000] * 4 + [0] * 8,
                every_s=every_s,
                ago_s=every_s / 2,
                observed_at_ms=at_ms,
            )
            for at_ms in minutes(5)
        ]

        made = decisions(KEEPS_UP, *facts)

        assert "publish" in {one.decided for one in made}
        assert {move.from_member for one in made for move in one.moves} == {"a"}


BESIDE_HOPELESS = {"a": {"t": (0, 1, 2)}, "b": {"t": (3, 4, 5)}, "c": {"t": (6, 7, 8)}}


def test_partition_that_no_member_drains_does_not_stop_the_one_move_that_heals_another() -> None:
    """Every member drains 1,000/s; of t-0 come 20,000, and 1,200 of b's, that drains with one partition less."""
    facts = [
        committing(
            [20_000.0, 150, 150, 400, 400, 400, 150, 150, 150],
            drained=[950.0, 25, 25, 334, 333, 333, 334, 333, 333],
            behind=[90_000, 9_000, 9_000] + [9_000] * 6,
            every_s=5,
            observed_at_ms=at_ms,
        )
        for at_ms in minutes(5)
    ]

    plans = [one for one in decisions(BESIDE_HOPELESS, *facts) if one.decided == "publish"]

    assert plans
    for plan in plans:
        # The three of b are alike.
        assert [(move.from_member, move.to_member) for move in plan.moves] == [("b", "c")]
