"""The zoo holds what it promises, by the word of Kafka's own tool."""

from collections.abc import Iterator

import pytest

from tests.support import kafka_tools
from tests.support.broker import small_broker
from tests.support.groups_zoo import Zoo, zoo
from tests.support.zoo_kinds import Commits


@pytest.fixture(scope="module")
def paused_zoo() -> Iterator[tuple[str, Zoo]]:
    with small_broker() as broker, zoo(broker.bootstrap_servers) as animals:
        animals.pause_traffic()
        yield broker.bootstrap_servers, animals


def test_offsets_are_the_same_in_two_calls_after_the_pause(paused_zoo: tuple[str, Zoo]) -> None:
    bootstrap, animals = paused_zoo

    first = kafka_tools.describe_offsets(bootstrap)
    second = kafka_tools.describe_offsets(bootstrap)

    assert first == second
    assert len({row.group_id for row in first}) == len(animals.kinds) >= 20
    assert any(row.lag for row in first)
    assert any(row.lag == 0 for row in first)


def test_groups_that_never_commit_show_no_committed_offset(paused_zoo: tuple[str, Zoo]) -> None:
    bootstrap, animals = paused_zoo

    rows = kafka_tools.describe_offsets(bootstrap)

    never = {name for name, kind in animals.kinds.items() if kind.commits is Commits.NEVER}
    uncommitted = {row.group_id for row in rows if row.committed_offset is None and row.member_id}
    committed = {row.group_id for row in rows if row.committed_offset is not None}
    assert never
    assert never <= uncommitted
    assert committed == animals.kinds.keys() - never


def test_type_and_state_of_each_group_are_those_of_its_kind(paused_zoo: tuple[str, Zoo]) -> None:
    bootstrap, animals = paused_zoo

    listed = {row.group_id: (row.group_type, row.state) for row in kafka_tools.list_groups(bootstrap)}

    assert listed == {name: (kind.group_type, kind.state) for name, kind in animals.kinds.items()}


def test_assignor_and_members_of_each_group_are_those_of_its_kind(paused_zoo: tuple[str, Zoo]) -> None:
    bootstrap, animals = paused_zoo

    states = {row.group_id: (row.assignor, row.members) for row in kafka_tools.describe_states(bootstrap)}

    living = {name: kind.members if kind.state == "Stable" else 0 for name, kind in animals.kinds.items()}
    assert {name: state for name, state in states.items() if animals.kinds[name].state == "Stable"} == {
        name: (kind.assignor, living[name]) for name, kind in animals.kinds.items() if kind.state == "Stable"
    }
    assert {name: members for name, (_, members) in states.items()} == living


def test_every_partition_of_a_subscription_has_one_member(paused_zoo: tuple[str, Zoo]) -> None:
    bootstrap, animals = paused_zoo

    rows = kafka_tools.describe_members(bootstrap)

    for name, kind in animals.kinds.items():
        members = [row for row in rows if row.group_id == name]
        assert sum(row.partitions for row in members) == (kind.partitions if kind.state == "Stable" else 0)
        assert all((row.group_instance_id is not None) == kind.static for row in members)
