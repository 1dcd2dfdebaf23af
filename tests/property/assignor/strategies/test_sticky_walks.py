"""A cooperative group walked at random: members join, leave, subscribe again, and sleep through rebalances."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.by_member import Placed, by_member
from assignor.model.group import Group
from assignor.strategies.handover import next_step
from assignor.strategies.sticky import cooperative as cooperative_sticky
from tests.support.assignors.groups import group, member

TOPICS = ("a", "b", "c")
PARTITIONS = {"a": 4, "b": 1, "c": 3}


@dataclass(kw_only=True)
class Live:
    """What one member knows: it holds `owned` until it sees an assignment without it."""

    topics: tuple[str, ...]
    owned: Placed = field(default_factory=dict)
    generation: int = -1

    def reading(self) -> set[tuple[str, int]]:
        return {(topic, number) for topic, numbers in self.owned.items() for number in numbers}


@dataclass(kw_only=True)
class World:
    """A group in which every rebalance plans again, as Kafka's leaders do."""

    members: dict[str, Live] = field(default_factory=dict)
    joined: int = 0
    generation: int = 0

    def change(self, kind: str, which: int, mask: int) -> None:
        topics = tuple(topic for i, topic in enumerate(TOPICS) if mask >> i & 1)
        if kind == "join":
            self.joined += 1
            self.members[f"m{self.joined}"] = Live(topics=topics)
        elif self.members:
            chosen = sorted(self.members)[which % len(self.members)]
            if kind == "leave":
                del self.members[chosen]
            else:
                self.members[chosen].topics = topics

    def group(self) -> Group:
        members = (
            member(name, *live.topics, owned=live.owned, generation=live.generation)
            for name, live in self.members.items()
        )
        return group(PARTITIONS, *members)

    def rebalance(self, asleep: int = 0) -> Assignment:
        """One generation; a member whose bit is set does not hear of it and goes on as before."""
        built = self.group()
        given_out = next_step(built, cooperative_sticky.assign(built))
        validity.check(built, given_out)
        self.generation += 1
        placed = by_member(built, given_out.member)
        may_read = {name: live.reading() for name, live in self.members.items()}
        for i, (name, live) in enumerate(sorted(self.members.items())):
            if not asleep >> i & 1:
                live.owned, live.generation = placed[name], self.generation
                # In which order members hear of it is not known: the old and the new may be read at once.
                may_read[name] |= live.reading()
        for one, other in combinations(may_read.values(), 2):
            assert not one & other
        return given_out


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(("join", "join", "leave", "subscribe")),
        st.integers(0, 5),
        st.integers(0, 7),
        st.just(0) | st.integers(0, 31),
    ),
    min_size=1,
    max_size=8,
)


def walk(changes: Sequence[tuple[str, int, int, int]]) -> World:
    world = World()
    for kind, which, mask, asleep in changes:
        world.change(kind, which, mask)
        world.rebalance(asleep)
    return world


@given(changes=CHANGES)
def test_no_partition_is_ever_with_two_members(changes: list[tuple[str, int, int, int]]) -> None:
    walk(changes).rebalance()


@given(changes=CHANGES)
def test_two_quiet_rebalances_reach_the_target_and_the_third_moves_nothing(
    changes: list[tuple[str, int, int, int]],
) -> None:
    world = walk(changes)

    world.rebalance()
    second = world.rebalance()
    third = world.rebalance()

    built = world.group()
    verdict = validity.check(built, second, even="optimal")
    assert verdict.moves == 0
    assert third.member.tolist() == second.member.tolist()


def test_member_that_sleeps_through_rebalances_is_waited_for() -> None:
    first_member = 0b1
    world = walk([("join", 0, 1, 0)])
    world.change("join", 0, 1)

    given_out = [world.rebalance(asleep) for asleep in (first_member, first_member, 0, 0)]

    assert [int((each.why == Unassigned.WITHHELD).sum()) for each in given_out] == [2, 2, 2, 0]
