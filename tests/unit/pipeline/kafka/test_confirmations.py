"""What brokers answer about commits that could not be read: an offset at once, its absence when it is said twice."""

from collections.abc import Collection
from typing import Any

from pipeline.kafka.confirmations import BrokerCommit, Confirmations
from pipeline.kafka.positions import PartitionKey

KEY: PartitionKey = ("t", 0)


class Said:
    """Brokers with commits by group; a group that is not in them gets no answer."""

    def __init__(self, commits: dict[str, dict[PartitionKey, int | None]], members: Any = None) -> None:
        self.known = commits
        self.member_lists = members or {}
        self.asked: list[str] = []

    def commits(
        self, group: str, partitions: Collection[PartitionKey]
    ) -> dict[PartitionKey, int | None] | None:
        self.asked.append(group)
        found = self.known.get(group)
        return None if found is None else {key: found[key] for key in partitions if key in found}

    def members(self, groups: Collection[str]) -> Any:
        return {group: self.member_lists[group] for group in groups if group in self.member_lists}


def asking(said: Said) -> Confirmations:
    brokers: Any = said
    return Confirmations(brokers=brokers)


def answers(one: Confirmations, group: str = "g") -> list[BrokerCommit]:
    return one.commits({group: [KEY]}, doubtful={(group, *KEY)})


def test_offset_that_the_coordinator_names_counts_at_once() -> None:
    assert answers(asking(Said({"g": {KEY: 5}}))) == [BrokerCommit("g", "t", 0, 5)]


def test_absence_counts_when_it_was_said_twice_in_a_row() -> None:
    said = Said({"g": {KEY: None}})
    one = asking(said)

    assert [answers(one), answers(one)] == [[], [BrokerCommit("g", "t", 0, None)]]
    one.commits({}, doubtful=set())
    assert answers(one) == []


def test_silence_says_nothing_however_often() -> None:
    one = asking(Said({}))

    assert [answers(one) for _ in range(3)] == [[], [], []]


def test_commit_that_nobody_knew_is_taken_and_its_absence_is_no_news() -> None:
    one = asking(Said({"g": {("t", 1): 7, ("t", 2): None}}))

    for _ in range(2):
        assert one.commits({"g": [("t", 1), ("t", 2)]}, doubtful=set()) == [BrokerCommit("g", "t", 1, 7)]


def test_more_groups_than_a_batch_asks_have_their_turns() -> None:
    said = Said({})
    one = asking(said)
    groups: dict[str, list[PartitionKey]] = {f"g{number:03}": [KEY] for number in range(250)}

    for _ in range(3):
        one.commits(groups, doubtful=set())

    assert {name: said.asked.count(name) for name in groups} == {
        name: 2 if int(name[1:]) < 50 else 1 for name in groups
    }


def test_group_is_seconded_when_the_brokers_name_the_same_members_with_the_same_partitions() -> None:
    here = {"m": frozenset({KEY})}
    one = asking(Said({}, {"same": here, "moved": {"m": frozenset({("t", 1)})}, "other": {"n": here["m"]}}))

    assert one.seconded(dict.fromkeys(("same", "moved", "other", "silent"), here)) == ("same",)


def test_more_groups_than_a_batch_asks_about_have_their_turns_to_be_seconded() -> None:
    here = {"m": frozenset({KEY})}
    names = [f"g{number:03}" for number in range(150)]
    one = asking(Said({}, dict.fromkeys(names[100:], here)))
    stored = dict.fromkeys(names, here)

    assert [len(one.seconded(stored)) for _ in range(3)] == [0, 50, 50]
