"""Work for idle members: what is given, and that giving stays cheap in large groups."""

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.model.group import Group
from assignor.strategies.lag_sticky import idle_members
from assignor.strategies.lag_sticky.givers import Giver
from tests.support.assignors.drain_groups import lag_sticky, moved, owned
from tests.support.assignors.groups import group, member


def giver(*weights: float, unread: frozenset[int] = frozenset()) -> Giver:
    return Giver(list(range(len(weights))), [-w for w in weights], lambda p, _: p not in unread)


@pytest.mark.parametrize(
    ("below", "most", "partition"),
    [(9.0, 9.0, 1), (99.0, 6.0, 1), (99.0, 5.0, 2), (5.0, 99.0, 3), (1.0, 99.0, -1), (99.0, 0.5, -1)],
)
def test_heaviest_within_the_limits_is_given(below: float, most: float, partition: int) -> None:
    assert giver(9.0, 6.0, 5.0, 1.0).heaviest(0, below, most) == partition


def test_what_was_given_away_or_may_not_be_read_is_passed_over() -> None:
    gives = giver(9.0, 6.0, 5.0, 1.0, unread=frozenset({1}))

    gives.give(0)
    gives.give(3)

    assert (gives.heaviest(0, 99.0, 99.0), gives.lightest(0, 99.0), gives.n_left) == (2, 2, 2)
    gives.give(2)
    assert (gives.heaviest(0, 99.0, 99.0), gives.lightest(0, 99.0)) == (-1, -1)


def _after_range(members: int, topics: int) -> Group:
    """Topics of one partition each: the first member owns everything."""
    names = [f"t{t:03d}" for t in range(topics)]
    owners = [
        member(f"m{m:04d}", *names, owned={name: [0] for name in names if m == 0}, capacity=100.0)
        for m in range(members)
    ]
    return group(dict.fromkeys(names, 1), *owners, rates={name: [0.1] for name in names})


def test_nobody_is_asked_once_the_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    pick = idle_members._FairSharing._pick

    def counted(self: idle_members._FairSharing, busiest: int, idle: int, *, is_first: bool) -> int:
        asked.append(idle)
        return pick(self, busiest, idle, is_first=is_first)

    monkeypatch.setattr(idle_members._FairSharing, "_pick", counted)
    lagging = _after_range(members=60, topics=40)

    target = lag_sticky(lagging, max_moves=3)

    validity.check(lagging, target)
    assert moved(lagging, target) == 3
    assert len(asked) == 3

    asked.clear()
    assert moved(lagging, lag_sticky(lagging, max_moves=0)) == 0
    assert asked == []


def test_members_asked_in_vain_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can give to a slow member without harm; 30 times 30 questions would be too many."""
    monkeypatch.setattr(idle_members, "_MOST_REFUSALS", 0)
    monkeypatch.setattr(idle_members, "_REFUSALS_EACH", 2)
    refusals: list[int] = []
    pick = idle_members._FairSharing._pick

    def counted(self: idle_members._FairSharing, busiest: int, idle: int, *, is_first: bool) -> int:
        found = pick(self, busiest, idle, is_first=is_first)
        refusals.extend([idle] if found < 0 else [])
        return found

    monkeypatch.setattr(idle_members._FairSharing, "_pick", counted)
    members = [member(f"a{m:02d}", "t", owned={"t": [2 * m, 2 * m + 1]}, capacity=100.0) for m in range(30)]
    members += [member(f"b{m:02d}", "t", capacity=0.001) for m in range(30)]
    lagging = group({"t": 60}, *members, rates={"t": [10.0] * 60})

    target = lag_sticky(lagging, max_moves=60)

    validity.check(lagging, target)
    assert np.bincount(refusals).max() <= 2


def test_each_idle_member_gets_nine_tenths_of_its_share() -> None:
    lagging = owned([0] * 64, [], [], [])

    counts = validity.check(lagging, lag_sticky(lagging, max_moves=64)).counts

    assert counts.min() >= 0.9 * 16
