"""Drivers of several tables and one cluster: one publishes, a trial leaves it alone, a second one is told whose it is."""

from dataclasses import replace
from uuid import uuid4

import pytest

from pipeline.errors import FencedError
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.planning.memory import PlanRecord
from pipeline.publish.claim import Claim
from pipeline.publish.outbox import PlansInTopic, Publisher
from tests.support.brokers.broker import create_topics

FIRST = Claim(owner="a/1/1", host="a", root="/first", tables_id="1")
SECOND = Claim(owner="b/2/2", host="b", root="/second", tables_id="2")


class Cluster:
    """A control topic and a cluster name of the test's own."""

    def __init__(self, bootstrap: str) -> None:
        self.name = f"publishers-{uuid4()}"
        self.properties = {"bootstrap.servers": bootstrap, "log_level": "0"}
        create_topics(bootstrap, {self.name: 1})

    def publisher(self, claim: Claim, *, is_dry: bool = False, takes_over: bool = False) -> Publisher:
        return Publisher(
            self.properties,
            topic=self.name,
            cluster=self.name,
            timeout_s=20,
            claim=claim,
            is_dry=is_dry,
            takes_over=takes_over,
        )

    def started(self, claim: Claim, *, is_dry: bool = False, takes_over: bool = False) -> Publisher:
        """A driver after its start; it has read the epochs."""
        made = self.publisher(claim, is_dry=is_dry, takes_over=takes_over)
        self.epochs: dict[str, int] = {}

        def on_connected(plans_in_topic: PlansInTopic) -> None:
            self.epochs = {group: one.epoch for group, one in plans_in_topic().items()}

        assert made.unavailable(on_connected) is None
        return made


@pytest.fixture
def cluster(broker: EmbeddedBroker) -> Cluster:
    return Cluster(broker.bootstrap_servers)


def plan(epoch: int) -> PlanRecord:
    return PlanRecord("g", epoch, "{}")


def test_trial_with_other_tables_leaves_the_publisher_alone(cluster: Cluster) -> None:
    first = cluster.started(FIRST)
    first.publish([plan(1)])

    trial = cluster.started(SECOND, is_dry=True)
    trial.publish([plan(10)])

    first.publish([plan(2)])
    cluster.started(FIRST)
    assert cluster.epochs == {"g": 2}


def test_second_publisher_is_refused_at_its_start_and_told_whose_place_it_is(cluster: Cluster) -> None:
    first = cluster.started(FIRST)

    with pytest.raises(FencedError, match=r"driver a/1/1 publishes .* under /first of host a; .*--take-over"):
        cluster.started(SECOND)

    first.publish([plan(1)])


def test_publisher_that_is_told_to_takes_over_and_the_first_one_says_by_whom_it_is_fenced(
    cluster: Cluster,
) -> None:
    first = cluster.started(FIRST)
    first.publish([plan(5)])

    second = cluster.started(SECOND, takes_over=True)

    assert cluster.epochs == {"g": 5}
    with pytest.raises(
        FencedError, match=r"driver b/2/2 publishes .* now, from the tables under /second of host b"
    ):
        first.publish([plan(6)])
    second.publish([plan(6)])
    with pytest.raises(FencedError, match="b/2/2"):
        cluster.started(FIRST)


def test_newer_driver_of_the_same_tables_takes_over_unasked(cluster: Cluster) -> None:
    first = cluster.started(FIRST)
    newer = replace(FIRST, owner="a/3/3")

    second = cluster.started(newer)

    with pytest.raises(FencedError, match="a/3/3"):
        first.publish([plan(1)])
    second.publish([plan(1)])


def test_driver_that_does_not_publish_any_more_withdraws_what_its_tables_have_published(
    cluster: Cluster,
) -> None:
    first = cluster.started(FIRST)
    first.publish([plan(1)])

    dry = cluster.started(replace(FIRST, owner="a/3/3"), is_dry=True)
    dry.publish([PlanRecord("g", 2, None)])

    cluster.started(FIRST)
    assert cluster.epochs == {"g": 2}
