"""The brokers of lagwise's topics, or the coordinator, are away: consuming goes on, and following comes back by itself."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from assignor.protocol.acks import Follows
from tests.support.brokers.broker import OFFSETS_TOPIC
from tests.support.brokers.cluster import ProxiedCluster, create_replicated_topics, proxied_cluster
from tests.support.followers.follow_plans import one_moved
from tests.support.followers.follow_processes import Processes
from tests.support.followers.follow_trouble import (
    AWAY,
    BACK,
    apply_a_plan,
    assert_unharmed,
    both_say,
    goes_on,
    start,
)
from tests.support.waiting import wait_until

# Longer than any trouble here: no member is evicted, so none has a reason to stop.
SESSION_MS = 40_000


@pytest.fixture(scope="module")
def proxied() -> Iterator[ProxiedCluster]:
    """Broker 1 has the records, broker 2 coordinates, broker 3 has lagwise's topics."""
    with proxied_cluster() as made:
        create_replicated_topics(
            made.cluster.internal_servers, {OFFSETS_TOPIC: [[2]] * 4}, cleanup_policy="compact"
        )
        yield made


@pytest.fixture
def group(proxied: ProxiedCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Processes]:
    """Two members that have applied a plan."""

    def placed(bootstrap: str, topics: Mapping[str, int]) -> None:
        data, *own = topics.items()
        create_replicated_topics(bootstrap, {data[0]: [[1]] * data[1]})
        create_replicated_topics(bootstrap, {topic: [[3]] for topic, _ in own}, cleanup_policy="compact")

    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    config = {"bootstrap.servers": proxied.cluster.bootstrap_servers, "session.timeout.ms": SESSION_MS}
    with Processes(
        proxied.cluster.internal_servers, name, tmp_path, partitions=4, config=config, make_topics=placed
    ) as processes:
        start(processes)
        yield processes
        for proxy in proxied.proxies.values():
            proxy.forward()


@pytest.mark.parametrize("trouble", ["refuse", "black_hole"])
def test_records_go_on_while_the_topics_are_away_and_following_comes_back(
    group: Processes, proxied: ProxiedCluster, trouble: str
) -> None:
    getattr(proxied.proxies[3], trouble)()
    both_say(group, AWAY)
    goes_on(group)

    proxied.proxies[3].forward()
    both_say(group, BACK)
    apply_a_plan(group)

    assert group.logged(AWAY) == ["a", "b"]
    assert_unharmed(group)


def test_plan_in_the_midst_of_which_the_topics_go_away_stops_no_partition(
    group: Processes, proxied: ProxiedCluster
) -> None:
    generation, ids, base = group.base(2)
    # Its moves name a member that is not there, so it stays half made.
    swapped = one_moved({**base, "nobody": []}, ids["a"], "nobody")
    epoch = group.publish(generation, {**base, "nobody": []}, swapped)
    group.wait_for_acks(Follows, epoch, 2)

    proxied.proxies[3].black_hole()
    both_say(group, AWAY)
    group.base(2, after=generation)
    goes_on(group)
    proxied.proxies[3].forward()
    both_say(group, BACK)
    apply_a_plan(group)

    assert_unharmed(group)


def test_silent_coordinator_stops_nothing_but_the_partition_that_is_handed_over(
    group: Processes, proxied: ProxiedCluster
) -> None:
    proxied.proxies[2].black_hole()
    goes_on(group)
    generation, ids, base = group.base(2)
    held = {ids["a"]: base[ids["b"]], ids["b"]: base[ids["a"]]}
    epoch = group.publish(generation, base, one_moved(held, ids["a"], ids["b"]))
    group.wait_for_acks(Follows, epoch, 2)
    offset = group.produced + 5

    def others_go_on() -> bool:
        newest = {line["place"]: line["offset"] for line in group.lines() if line["what"] == "record"}
        return (
            sum(newest.get(place, 0) >= offset for place in range(group.partitions)) >= group.partitions - 1
        )

    wait_until(others_go_on, what="the other partitions processed")
    proxied.proxies[2].forward()
    goes_on(group)
    apply_a_plan(group)

    assert_unharmed(group)
