"""Groups of consumers in Java on a real broker, under the assignors of `lagwise-follow.jar`."""

from collections import Counter
from collections.abc import Iterator

import pytest

from assignor.protocol.acks import Applied, Refused
from assignor.strategies.registry import RebalanceProtocol
from tests.support.broker import admin_client, create_topics, produce
from tests.support.java_jar import VERSIONS, JavaJar, java_jar
from tests.support.java_members import (
    COOPERATIVE,
    EAGER,
    OF_PROTOCOL,
    JavaHost,
    JavaMember,
    properties,
    wait_for,
)
from tests.support.plugin_members import Members, PartitionKey
from tests.support.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.waiting import wait_until

BOTH = [pytest.param(protocol, id=protocol.name.lower()) for protocol in RebalanceProtocol]


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> JavaJar:
    return java_jar(tmp_path_factory.mktemp("jar"))


@pytest.fixture(scope="module")
def host(jar: JavaJar) -> Iterator[JavaHost]:
    with JavaHost(jar) as running:
        yield running


def member(
    host: JavaHost, setup: PluginSetup, *assignors: str, following: bool = True, **more: str
) -> JavaMember:
    config = properties(setup.bootstrap, setup.name, assignors, **more)
    return JavaMember(host, config, [setup.name], following=following)


def three(
    members: Members, host: JavaHost, setup: PluginSetup, *assignors: str
) -> dict[str, frozenset[PartitionKey]]:
    for _ in range(3):
        members.add(member(host, setup, *assignors))
    return members.settled(setup.places)


def apply(setup: PluginSetup, members: Members, *, epoch: int = 1) -> None:
    """A plan that no even strategy gives, published, applied and acknowledged by all."""
    base = members.owned()
    target = all_to_one(base)
    setup.publish(setup.plan(base, target, generation=members.generation, epoch=epoch))
    wait_until(lambda: members.owned() == target, what=f"the target of plan {epoch}")
    wait_until(
        lambda: {ack.member for ack in setup.said(Applied) if ack.epoch == epoch} == set(base),
        what=f"plan {epoch} acknowledged",
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "assignor", [pytest.param(EAGER, id="eager"), pytest.param(COOPERATIVE, id="cooperative")]
)
def test_published_plan_is_applied_by_all(
    jar: JavaJar, setup: PluginSetup, assignor: str, version: str
) -> None:
    with JavaHost(jar, version) as host, Members() as members:
        base = three(members, host, setup, assignor)
        generation = members.generation

        apply(setup, members)
        views = [view for one in members.all for view in one.views if view.generation == generation + 1]
        wait_until(
            lambda: len(set().union(*(one.read for one in members.all))) == PARTITIONS * RECORDS,
            what="all records",
        )

    assert setup.said(Refused) == []
    # In the first step of a cooperative rebalance nobody has what moves.
    moved = base[max(base)] if assignor == COOPERATIVE else frozenset()
    assert not any(view.owned & moved for view in views)
    assert all(isinstance(one, JavaMember) and one.failed is None for one in members.gone)


@pytest.mark.parametrize("protocol", BOTH)
@pytest.mark.parametrize("java_leads", [True, False], ids=["java-leads", "python-leads"])
def test_java_and_kafka_python_follow_in_one_group(
    host: JavaHost, setup: PluginSetup, protocol: RebalanceProtocol, *, java_leads: bool
) -> None:
    with Members() as members:

        def java() -> None:
            members.add(member(host, setup, OF_PROTOCOL[protocol]))

        def python() -> None:
            members.add(setup.follower(protocol=protocol))

        # The first to join leads, and goes on to.
        for add in (java, python, java) if java_leads else (python, java, java):
            add()
            wait_until(lambda: members.all[-1].views, what="another member")
        members.settled(setup.places)

        apply(setup, members)

    assert setup.said(Refused) == []


def test_plain_consumer_applies_the_plan_in_the_next_rebalance(host: JavaHost, setup: PluginSetup) -> None:
    with Members() as members:
        plain = [member(host, setup, EAGER, following=False) for _ in range(2)]
        for one in plain:
            members.add(one)
        base = members.settled(setup.places)
        target = all_to_one(base)
        setup.publish(setup.plan(base, target, generation=members.generation))
        # Readers poll all the time; a rejoin too early is repeated.
        for _ in range(3):
            generation = members.generation
            for one in plain:
                one.order("rejoin")
            members.settled(setup.places, after=generation)
            if members.owned() == target:
                break

        assert members.owned() == target


def test_group_without_a_control_topic_is_assigned_by_kafkas_sticky_and_follows_when_it_is_there(
    host: JavaHost, setup: PluginSetup
) -> None:
    admin = admin_client(setup.bootstrap)
    admin.delete_topics([setup.control])[setup.control].result(10)
    with Members() as members:
        owned = three(members, host, setup, EAGER)
        wait_for(host, f"Control topic {setup.control} cannot be read")
        produce(setup.bootstrap, setup.name, dict.fromkeys(range(PARTITIONS), RECORDS))
        wait_until(
            lambda: len(set().union(*(one.read for one in members.all))) == PARTITIONS * RECORDS * 2,
            what="all records",
        )
        create_topics(setup.bootstrap, {setup.control: 1})
        wait_until(
            lambda: sum(f"Control topic {setup.control} is there again" in line for line in host.said) == 3,
            what="three that follow again",
        )
        apply(setup, members)

    assert Counter(map(len, owned.values())) == {2: 3}
    assert sum(f"Control topic {setup.control} cannot be read" in line for line in host.said) == 3


def test_partitions_of_a_member_that_was_away_are_not_kept_for_it(host: JavaHost, setup: PluginSetup) -> None:
    """It is told of no loss and goes on to say that it holds what it had; its client says better."""
    with Members() as members:
        away = member(
            host, setup, COOPERATIVE, following=False, max_poll_interval_ms="3000", session_timeout_ms="3000"
        )
        members.add(away)
        wait_until(lambda: len(away.now.owned) == PARTITIONS, what="all to the first")
        away.order("busy")
        members.add(member(host, setup, COOPERATIVE, following=False))
        members.settled(setup.places)
