"""Strategies in Java on a real broker, in one group with the same strategy of kafka-python."""

from collections.abc import Iterator

import pytest

from assignor.clients.kafka_python import LagAwareAssignor
from assignor.strategies.catalogue import RebalanceProtocol
from tests.support.brokers.broker import produce
from tests.support.followers.group_members import Members
from tests.support.followers.plugin_members import KafkaPythonMember
from tests.support.followers.plugin_setup import PluginSetup
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import JavaHost, java_member, none_failed

LAG_AWARE = "lagwise.follow.LagAwareAssignor"
OF_STRATEGY = {
    "constrained-cooperative-sticky": "lagwise.follow.ConstrainedCooperativeStickyAssignor",
    "sticky-stream-join": "lagwise.follow.StickyStreamJoinAssignor",
}


@pytest.fixture(scope="module")
def host() -> Iterator[JavaHost]:
    with JavaHost(java_jar()) as running:
        yield running


@pytest.mark.parametrize("java_leads", [True, False], ids=["java-leads", "python-leads"])
def test_lag_aware_leader_asks_its_brokers_for_lag(
    host: JavaHost, setup: PluginSetup, *, java_leads: bool
) -> None:
    # As nobody commits, each rebalance sees the same lag: 120 records, and five times 20.
    produce(setup.bootstrap, setup.name, {0: 100})
    by_lag = LagAwareAssignor(
        group_id=setup.name, auto_offset_reset="earliest", bootstrap_servers=setup.bootstrap
    )
    generation = -1

    with Members() as members:

        def java() -> None:
            members.add(java_member(host, setup, LAG_AWARE, following=False, commits=False))

        def python() -> None:
            members.add(
                KafkaPythonMember(
                    setup.bootstrap, setup.name, [setup.name], beside=[by_lag], enable_auto_commit=False
                )
            )

        # The first to join leads, and goes on to.
        for add in (java, python) if java_leads else (python, java):
            add()
            owned = members.settled(setup.places, after=generation)
            generation = members.generation

    heavy = next(places for places in owned.values() if (setup.name, 0) in places)
    assert sorted(map(len, owned.values())) == [3, 3]
    # In each round the other, who has less, comes first.
    assert {number for _, number in heavy} == {0, 3, 5}
    assert none_failed(members)


@pytest.mark.parametrize("protocol", RebalanceProtocol, ids=lambda protocol: protocol.name.lower())
@pytest.mark.parametrize("name", OF_STRATEGY)
def test_java_and_kafka_python_keep_what_they_have_as_the_group_grows(
    host: JavaHost, setup: PluginSetup, name: str, protocol: RebalanceProtocol
) -> None:
    java_class = OF_STRATEGY[name]
    more = {"lagwise_rebalance_protocol": protocol.name.lower()}
    with Members() as members:
        members.add(java_member(host, setup, java_class, following=False, **more))
        alone = members.settled(setup.places)
        members.add(
            KafkaPythonMember(setup.bootstrap, setup.name, [setup.name], strategy=name, protocol=protocol)
        )
        two = members.settled(setup.places, after=members.generation)
        members.add(java_member(host, setup, java_class, following=False, **more))
        three = members.settled(setup.places, after=members.generation)

    assert [sorted(map(len, owned.values())) for owned in (alone, two, three)] == [[6], [3, 3], [2, 2, 2]]
    assert all(three[member] <= two[member] for member in two)
    assert none_failed(members)
