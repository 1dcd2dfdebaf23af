"""Members in Java and of kafka-python in one group: either leads, and all follow."""

from collections.abc import Iterator

import pytest

from assignor.protocol.acks import Refused
from assignor.strategies.catalogue import RebalanceProtocol
from tests.support.followers.group_members import Members
from tests.support.followers.plugin_setup import PluginSetup
from tests.support.java.java_jar import java_jar
from tests.support.java.java_members import OF_PROTOCOL, JavaHost, apply, java_member, none_failed
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def host() -> Iterator[JavaHost]:
    with JavaHost(java_jar()) as running:
        yield running


@pytest.mark.parametrize("protocol", RebalanceProtocol, ids=lambda protocol: protocol.name.lower())
@pytest.mark.parametrize("java_leads", [True, False], ids=["java-leads", "python-leads"])
def test_java_and_kafka_python_follow_in_one_group(
    host: JavaHost, setup: PluginSetup, protocol: RebalanceProtocol, *, java_leads: bool
) -> None:
    with Members() as members:

        def java() -> None:
            members.add(java_member(host, setup, OF_PROTOCOL[protocol]))

        def python() -> None:
            members.add(setup.follower(protocol=protocol))

        # The first to join leads, and goes on to.
        for add in (java, python, java) if java_leads else (python, java, java):
            add()
            wait_until(lambda: members.all[-1].views, what="another member")
        members.settled(setup.places)

        apply(setup, members)

    assert setup.said(Refused) == []
    assert none_failed(members)


def test_java_kafka_python_and_aiokafka_follow_in_one_group(host: JavaHost, setup: PluginSetup) -> None:
    with Members() as members:
        members.add(java_member(host, setup, OF_PROTOCOL[RebalanceProtocol.EAGER]))
        members.add(setup.aiokafka_follower())
        members.add(setup.follower())
        members.settled(setup.places)

        apply(setup, members)

    assert setup.said(Refused) == []
    assert none_failed(members)
