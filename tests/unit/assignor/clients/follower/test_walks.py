"""Random walks of a whole group of followers, and the mistakes that they must not survive."""

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import pytest

from assignor.clients.control import targets
from assignor.clients.follower import plan as follower_plan
from assignor.clients.follower import rules as follower_state_rules
from assignor.clients.follower.state import FollowerState, Mark, PartitionKey, Token
from assignor.protocol.acks import Applied, Release
from assignor.protocol.migration import Migration
from tests.support.followers.follow_walk import walk
from tests.support.followers.follow_world import BrokenPromiseError, World

SEEDS = range(100)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_owners_and_each_has_one_when_quiet(seed: int) -> None:
    walk(seed)


def test_walks_hand_over_and_apply() -> None:
    worlds = [walk(seed) for seed in range(20)]

    assert sum(world.count(Release) for world in worlds) > 50
    assert sum(world.count(Applied) for world in worlds) > 20


class Migrating(World):
    """Brokers of which each plan says something else about migration."""

    def publish(self) -> None:
        super().publish()
        assert self.plan is not None
        self.plan = replace(self.plan, migration=self.random.choice(get_args(Migration)))

    def become_quiet(self, *, rounds: int = 120) -> None:
        super().become_quiet(rounds=rounds)
        if self.plan is None or self.plan.migration != "possible":
            return
        for node in self.nodes:
            if node.state.held != node.state.base:
                raise BrokenPromiseError(
                    f"{node.name} holds what was handed over, where migration is possible"
                )


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_stays_handed_over_where_migration_has_become_possible(seed: int) -> None:
    walk(seed, world_type=Migrating)


class Steady(World):
    """Nobody finds the plan withdrawn, and everybody hears of everything."""

    withdraws = 0.0
    undelivered = 0.0
    loses_topics = False

    def become_quiet(self, *, rounds: int = 120) -> None:
        super().become_quiet(rounds=rounds)
        plan = self.plan
        if plan is None or plan.base_generation != self.generation or set(plan.members) != set(self.members):
            return
        target = targets(plan)
        for node in self.nodes:
            wanted = {place for place, member in target.items() if member == node.member}
            if node.state.held != wanted:
                raise BrokenPromiseError(f"{node.name} holds {sorted(node.state.held)}, not {sorted(wanted)}")


@pytest.mark.parametrize("seed", SEEDS)
def test_plan_of_the_generation_is_applied_by_all_when_quiet(seed: int) -> None:
    walk(seed, world_type=Steady)


def first_failure(seeds: range) -> str:
    for seed in seeds:
        try:
            walk(seed)
        except BrokenPromiseError as error:
            return str(error)
    return "none"


def forget(_: FollowerState, base: frozenset[PartitionKey]) -> Mapping[PartitionKey, Token]:
    return {place: Token(mark=Mark.HELD) for place in base}


def test_forgotten_tokens_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_state_rules, "restored_tokens", forget)

    assert "is read by" in first_failure(SEEDS)


def test_follower_that_waits_for_the_new_owner_only_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_plan, "named_in_moves", lambda _plan: frozenset())

    assert "is begun without" in first_failure(SEEDS)
