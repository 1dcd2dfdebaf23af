"""When a group is taken for a ghost: the brokers have said so twice, and nothing else."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from pipeline.kafka import descriptions, ghosts
from pipeline.kafka.descriptions import describe_groups
from pipeline.kafka.ghosts import Brokers, GhostHunt

DAY_MS = 86_400_000
KEYS = (("t", 0),)


class Said:
    """Brokers that list some groups and say of others that they are gone."""

    def __init__(self, listed: set[str] | None, gone: set[str]) -> None:
        self.list = listed
        self.gone = gone
        self.asked: list[tuple[str, ...]] = []

    def listed(self) -> frozenset[str] | None:
        return None if self.list is None else frozenset(self.list)

    def are_gone(self, groups: Mapping[str, Any]) -> frozenset[str]:
        if groups:
            self.asked.append(tuple(groups))
        return frozenset(groups) & self.gone


def hunt(said: Said) -> GhostHunt:
    brokers: Any = said
    return GhostHunt(brokers=brokers)


def step(one: GhostHunt, now_ms: int, *stored: str) -> tuple[str, ...]:
    return one.found(lambda: dict.fromkeys(stored, KEYS), now_ms=now_ms)


def test_group_is_dropped_when_it_was_said_to_be_gone_twice() -> None:
    one = hunt(Said(listed={"lives"}, gone={"ghost"}))

    assert step(one, 1, "lives", "ghost") == ()
    assert step(one, 2, "lives", "ghost") == ("ghost",)
    assert step(one, 3, "lives") == ()


def test_group_that_is_listed_is_not_asked_about() -> None:
    said = Said(listed={"lives"}, gone={"lives"})
    one = hunt(said)

    assert [step(one, now_ms, "lives") for now_ms in (1, 2, 3)] == [(), (), ()]
    assert said.asked == []


def test_group_that_is_there_the_second_time_stays() -> None:
    said = Said(listed=set(), gone={"g"})
    one = hunt(said)
    step(one, 1, "g")
    said.gone = set()

    assert [step(one, now_ms, "g") for now_ms in (2, 3)] == [(), ()]


def test_listing_that_a_coordinator_did_not_answer_starts_nothing() -> None:
    said = Said(listed=None, gone={"g"})
    one = hunt(said)

    assert [step(one, now_ms, "g") for now_ms in (1, 2, 3)] == [(), (), ()]
    assert said.asked == []


def test_brokers_are_asked_once_a_day_and_after_all_was_read_again() -> None:
    said = Said(listed=set(), gone=set())
    one = hunt(said)

    step(one, 1, "g")
    step(one, DAY_MS, "g")
    assert len(said.asked) == 1
    step(one, DAY_MS + 1, "g")
    assert len(said.asked) == 2
    one.restart()
    step(one, DAY_MS + 2, "g")
    assert len(said.asked) == 3


def test_many_groups_are_asked_about_over_several_batches() -> None:
    names = [f"g{number:02d}" for number in range(60)]
    one = hunt(Said(listed=set(), gone=set(names)))

    found = [step(one, now_ms, *names) for now_ms in range(1, 5)]

    assert [len(groups) for groups in found] == [0, 25, 25, 10]
    assert sorted(group for groups in found for group in groups) == names


def test_dead_group_is_found_behind_many_unlisted_ones_that_their_coordinators_do_not_deny() -> None:
    names = [f"g{number:02d}" for number in range(60)]
    said = Said(listed=set(), gone={names[-1]})
    one = hunt(said)

    found = [one.among(dict.fromkeys(names, KEYS)) for _ in range(4)]

    assert found == [(), (), (), (names[-1],)]
    assert max(map(len, said.asked)) == 25
    assert {group for groups in said.asked for group in groups} == {*names}


@pytest.mark.parametrize("name", ["", "a\0b"], ids=["no name", "NUL"])
def test_group_whose_name_librdkafka_cannot_take_is_left_alone(name: str) -> None:
    said = Said(listed=set(), gone={name})
    one = hunt(said)

    assert [step(one, now_ms, name) for now_ms in (1, 2, 3)] == [(), (), ()]
    assert said.asked == []


@pytest.mark.parametrize("name", ["", "a\0b"], ids=["no name", "NUL"])
def test_no_client_is_given_the_name_of_a_group_that_it_cuts_or_dies_of(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A consumer with `group.id = ""` ends the process when it is asked for commits.
    def is_made(*_: Any, **__: Any) -> Any:
        raise AssertionError("a client was made")

    monkeypatch.setattr(ghosts, "Consumer", is_made)
    monkeypatch.setattr(descriptions.child_python, "asked", is_made)
    brokers = Brokers({}, is_made, partial(describe_groups, {}, timeout_s=1), timeout_s=1)

    assert brokers.commits(name, KEYS) is None
    assert brokers.members([name]) == {}
    assert brokers.are_gone({name: KEYS}) == frozenset()
