from dataclasses import replace

import pytest

from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.selection import DEFAULT_ASSIGNORS, Mode
from tests.support.followers.upgrade_group import SimulatedGroup
from tests.support.followers.upgrade_member import Phase, RebalancingMember

BOTH = DEFAULT_ASSIGNORS["kip"]
OLD = ("range",)
NEW = ("cooperative-sticky",)
MINE = frozenset({("a", 0), ("a", 1)})


def cooperative(*, assignors: tuple[str, ...] = BOTH) -> RebalancingMember:
    """A member at rest that owns something and kept it in its last rebalance."""
    joined = RebalancingMember.started(assignors).prepare().selected("cooperative-sticky", generation=4)
    return joined.assigned(MINE)


def test_member_starts_eager_and_turns_cooperative_once_that_is_selected() -> None:
    member = RebalancingMember.started(BOTH)

    assert member.protocol is RebalanceProtocol.EAGER
    assert cooperative().protocol is RebalanceProtocol.COOPERATIVE
    assert not member.may_commit
    assert cooperative().may_commit


def test_cooperative_member_keeps_its_partitions_while_it_joins() -> None:
    joining = cooperative().prepare()

    assert (joining.phase, joining.owned, joining.may_commit) == (Phase.JOINING, MINE, True)


def test_eager_member_revokes_everything_before_it_joins() -> None:
    eager = RebalancingMember.started(OLD).prepare().selected("range", generation=4).assigned(MINE)

    assert eager.prepare().owned == frozenset()


def test_member_that_holds_partitions_loses_them_when_an_eager_assignor_is_selected() -> None:
    lost = cooperative().prepare().selected("range", generation=5)

    assert (lost.phase, lost.owned, lost.may_commit) == (Phase.LOST, frozenset(), False)
    assert lost.protocol is RebalanceProtocol.EAGER


def test_member_that_lost_its_partitions_commits_again_only_once_it_has_rejoined() -> None:
    lost = cooperative().prepare().selected("range", generation=5)

    ignored = lost.assigned(MINE)
    rejoining = ignored.prepare().selected("range", generation=6)
    rejoined = rejoining.assigned(MINE)

    assert (ignored.phase, ignored.owned, ignored.may_commit) == (Phase.REJOIN, frozenset(), False)
    assert (rejoining.phase, rejoining.may_commit) == (Phase.SYNCING, False)
    assert (rejoined.phase, rejoined.owned, rejoined.may_commit) == (Phase.STABLE, MINE, True)


def test_lost_member_stays_without_commits_when_the_next_rebalance_interrupts_it() -> None:
    interrupted = cooperative().prepare().selected("range", generation=5).interrupted()

    assert (interrupted.phase, interrupted.may_commit) == (Phase.REJOIN, False)


def test_cooperative_member_without_partitions_has_nothing_to_lose() -> None:
    empty = replace(cooperative(), owned=frozenset())

    assert empty.prepare().selected("range", generation=5).phase is Phase.SYNCING


def test_member_that_had_to_give_up_a_partition_joins_again() -> None:
    syncing = cooperative().prepare().selected("cooperative-sticky", generation=5)

    assert syncing.assigned(MINE | {("b", 0)}).phase is Phase.STABLE
    assert syncing.assigned(frozenset({("a", 0)})).phase is Phase.REJOIN


def test_fenced_member_has_lost_everything() -> None:
    fenced = cooperative().fenced()

    assert (fenced.phase, fenced.owned, fenced.may_commit) == (Phase.OUT, frozenset(), False)


@pytest.mark.parametrize(
    ("mode", "lists", "protocol"),
    [
        ("kip", [OLD, BOTH], RebalanceProtocol.COOPERATIVE),
        ("shipped", [OLD, BOTH], RebalanceProtocol.EAGER),
        ("shipped", [OLD, BOTH, NEW], RebalanceProtocol.COOPERATIVE),
    ],
    ids=["one bounce", "one bounce as shipped is not enough", "two bounces (KIP-429)"],
)
def test_cooperative_after_one_rolling_bounce_or_as_shipped_after_two(
    mode: Mode, lists: list[tuple[str, ...]], protocol: RebalanceProtocol
) -> None:
    group = SimulatedGroup(mode=mode)
    for assignors in lists:
        for slot in range(3):
            group.stop(slot)
            group.start(slot, assignors)
            group.settle()

    assert group.coordinator.assignor == "cooperative-sticky"
    assert {consumer.state.protocol for consumer in group.consumers.values()} == {protocol}


def test_late_member_with_the_old_list_takes_the_group_back_to_eager_and_it_recovers_when_that_leaves() -> (
    None
):
    group = SimulatedGroup()
    for slot in range(3):
        group.start(slot, BOTH)
    group.settle()

    group.start(3, OLD)
    group.settle()
    late = group.coordinator.assignor
    group.stop(3)
    group.settle()

    assert (late, group.coordinator.assignor) == ("range", "cooperative-sticky")


def test_member_whose_list_shares_nothing_with_the_group_is_refused() -> None:
    group = SimulatedGroup()
    group.start(0, OLD)
    group.settle()

    group.start(1, NEW)
    group.settle()

    assert set(group.consumers) == {0}
