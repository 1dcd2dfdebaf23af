"""Groups in Java, taken from Kafka's own assignors to following and back, one member at a time, under traffic.

While one member is left that does not list the assignor, the other one of the lists is selected (KIP-726).
"""

from collections.abc import Iterator, Sequence

import pytest

from tests.support.brokers.broker import admin_client
from tests.support.brokers.flow import Flow
from tests.support.followers.group_members import Members
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup
from tests.support.followers.stays import overlapping
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import (
    COOPERATIVE,
    COOPERATIVE_STICKY,
    EAGER,
    RANGE,
    JavaHost,
    JavaMember,
    apply,
    java_member,
    none_failed,
)
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def host() -> Iterator[JavaHost]:
    with JavaHost(java_jar()) as running:
        yield running


def member(host: JavaHost, setup: PluginSetup, assignors: Sequence[str]) -> JavaMember:
    return java_member(host, setup, *assignors, following=assignors[0] in {EAGER, COOPERATIVE})


def selected(setup: PluginSetup) -> str:
    """Name of the assignor that the group has."""
    admin = admin_client(setup.bootstrap)
    described = admin.describe_consumer_groups([setup.name])[setup.name].result(10)
    return str(described.partition_assignor)


def bounced(host: JavaHost, members: Members, setup: PluginSetup, assignors: Sequence[str]) -> list[str]:
    """Each member replaced by one with that list, one at a time: what was selected after each."""
    names = []
    for old in list(members.all):
        generation = members.generation
        members.stop(old)
        members.add(member(host, setup, assignors))
        members.settled(setup.places, after=generation)
        names.append(selected(setup))
    return names


def every_record(flow: Flow, members: Members) -> bool:
    read = set().union(*(one.read for one in [*members.gone, *members.all]))
    return len(read) == PARTITIONS * (flow.produced + RECORDS)


@pytest.mark.parametrize(
    ("plain", "following", "name"),
    [(RANGE, EAGER, "range"), (COOPERATIVE_STICKY, COOPERATIVE, "cooperative-sticky")],
    ids=["eager", "cooperative"],
)
def test_group_comes_over_and_goes_back_in_one_bounce_each(
    host: JavaHost, setup: PluginSetup, plain: str, following: str, name: str
) -> None:
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        for _ in range(2):
            members.add(member(host, setup, [plain]))
        members.settled(setup.places)
        over = bounced(host, members, setup, [following, plain])
        apply(setup, members, epoch=1)
        out = bounced(host, members, setup, [plain])
        flow.end()
        wait_until(lambda: every_record(flow, members), what="every record")

    assert over == [name, "lagwise"]
    assert out == [name, name]
    assert overlapping(stay for one in members.gone for stay in one.stays) == []
    assert none_failed(members)


def test_group_goes_from_eager_to_cooperative_and_back_in_one_bounce_each(
    host: JavaHost, setup: PluginSetup
) -> None:
    flow = Flow(setup.bootstrap, setup.name, partitions=PARTITIONS, records_per_s=20)
    flow.start()
    with Members() as members:
        for _ in range(2):
            members.add(member(host, setup, [EAGER]))
        members.settled(setup.places)
        over = bounced(host, members, setup, [COOPERATIVE])
        apply(setup, members, epoch=1)
        back = bounced(host, members, setup, [EAGER])
        apply(setup, members, epoch=2)
        flow.end()
        wait_until(lambda: every_record(flow, members), what="every record")

    assert over == back == ["lagwise", "lagwise"]
    assert overlapping(stay for one in members.gone for stay in one.stays) == []
    assert none_failed(members)
