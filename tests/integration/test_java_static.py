"""Static members in Java (KIP-345) under the assignors that follow plans."""

from collections.abc import Iterator

import pytest

from assignor.protocol.acks import Refused
from tests.support.followers.group_members import Members
from tests.support.followers.plugin_setup import PluginSetup
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import (
    COOPERATIVE,
    EAGER,
    JavaHost,
    apply,
    java_member,
    none_failed,
)


@pytest.fixture(scope="module")
def host() -> Iterator[JavaHost]:
    with JavaHost(java_jar()) as running:
        yield running


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
def test_static_members_come_back_to_their_part_of_a_plan_without_a_rebalance_and_follow_on(
    host: JavaHost, setup: PluginSetup, assignor: str
) -> None:
    with Members() as members:
        for name in "abc":
            members.add(java_member(host, setup, assignor, group_instance_id=name))
        members.settled(setup.places)
        apply(setup, members)
        generation, before = members.generation, {one.now.member_id for one in members.all}
        # The leader is one of them.
        for name, old in zip("abc", list(members.all), strict=True):
            members.stop(old)
            back = members.add(java_member(host, setup, assignor, group_instance_id=name))
            members.settled(setup.places)
            assert back.now.owned == old.now.owned
        assert members.generation == generation
        assert before.isdisjoint(one.now.member_id for one in members.all)

        apply(setup, members, epoch=2)

    assert setup.said(Refused) == []
    assert none_failed(members)
