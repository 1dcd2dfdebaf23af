"""From the lag of a KIP-848 group to its new owners: lagwise decides, the broker's assignor applies, the group answers."""

from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer

from assignor.protocol import control
from assignor.protocol.ranges import parse_ranges
from tests.integration.test_broker_assignor import CONTROL, PARTITIONS, broker_of
from tests.integration.test_plans_of_consumer_groups import BY_BROKER, Row, Scene
from tests.support.followers.broker_group import BrokerGroup, ConfluentMember
from tests.support.followers.group_members import Members
from tests.support.java.broker_jar import OF_THE_DEMO
from tests.support.java.java_apps import Owned
from tests.support.waiting import wait_until


def _target(row: Row) -> Owned:
    return {
        member: frozenset(
            (topic, number) for topic, ranges in topics for number in parse_ranges(ranges, at_most=PARTITIONS)
        )
        for member, topics in row["assignment"]
    }


def test_plan_is_made_published_applied_by_the_broker_and_known_to_be_applied(tmp_path: Path) -> None:
    with broker_of(OF_THE_DEMO, tmp_path) as broker, Members() as members:
        bootstrap = broker.bootstrap_servers
        group = BrokerGroup(bootstrap=bootstrap, name="g", control=CONTROL)
        for _ in range(2):
            members.add(ConfluentMember(bootstrap, "g", ["t"]))
        places = [("t", n) for n in range(PARTITIONS)]
        before = group.settled(places, members=2)
        scene = Scene(bootstrap, "g", tmp_path, topic="t", partitions=PARTITIONS)
        wait_until(lambda: scene.is_in("Stable", 2), what="the group in the table")
        settings = replace(BY_BROKER, cluster=broker.cluster_id)

        published = scene.decide(settings)
        target = _target(published)
        assert (published["decision"], published["reason"]) == ("publish", None)
        assert target != before
        # The clock of the tables stands still, and that of the broker does not.
        value = published["record"].replace('"valid_until":"2023-', '"valid_until":"2099-')
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        producer.produce(
            CONTROL,
            key=control.encode_key(broker.cluster_id, "g"),
            value=value,
            headers=control.headers(published["epoch"]),
        )
        assert producer.flush(30) == 0
        group.apply(target)
        wait_until(lambda: scene.is_in("Stable", 2), what="the group at rest in the table")
        after = scene.decide(settings)

        assert group.owned() == target
        assert after["plan"]["status"] == "applied"
        assert after["plan"]["moves_made"] == len(published["moves"])
        scene.log.close()
