"""What a look of a plug-in at its plan costs: clients look many times a second, and plans may have 100,000 partitions."""

from collections.abc import ValuesView
from dataclasses import replace

import pytest

from assignor.clients.control import ControlState
from assignor.clients.plugin.membership import following
from assignor.protocol.control import ControlMember
from tests.support.followers.plans import plan

BASE = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
TARGET = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
NOW_MS = 1_000


class CountedMembers(dict[str, ControlMember]):
    """Members of a plan, and how often somebody has walked them."""

    walks = 0

    def values(self) -> ValuesView[ControlMember]:
        self.walks += 1
        return super().values()


@pytest.mark.parametrize(("target", "generation", "most"), [(BASE, 7, 1), (TARGET, 8, 0)])
def test_looks_do_not_walk_a_plan_that_is_not_joined_for(
    monkeypatch: pytest.MonkeyPatch, target: dict[str, dict[str, tuple[int, ...]]], generation: int, most: int
) -> None:
    record = plan(BASE, target, generation=7)
    members = CountedMembers(record.members)
    pending = replace(record, members=members)
    monkeypatch.setattr(ControlState, "plan", lambda _self, _now_ms: pending)
    member = following(ControlState(cluster="local", group="g"))
    member.assigned(BASE["a"], None, generation, member="a", now_ms=NOW_MS)

    assert not any(member.wants_rejoin(NOW_MS) for _ in range(100))
    assert members.walks == most
