"""Whatever becomes of lagwise's topics, and of the coordinator: consuming goes on, and following comes back by itself."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from assignor.protocol.acks import Accepted, Applied
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.broker import OFFSETS_TOPIC, admin_client, create_topics
from tests.support.cluster import ProxiedCluster, create_replicated_topics, proxied_cluster
from tests.support.follow_plans import one_moved
from tests.support.follow_processes import Processes
from tests.support.inject import offsets_partition
from tests.support.secured import Right, Secured
from tests.support.waiting import wait_until

AWAY, BACK = "follows no plan for now", "can be read again"
# Longer than any trouble here: no member is evicted, so none has a reason to stop.
SESSION_MS = 40_000

Make: TypeAlias = Callable[[str], Processes]


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


def start(processes: Processes) -> None:
    for who in "ab":
        processes.start(who)
    apply_a_plan(processes)


_swapped: dict[str, int] = {}
"""Generation in which the members of a group have one another's partitions."""


def apply_a_plan(processes: Processes) -> None:
    """Everything changes hands, in the generation that there is; a rebalance may come between."""
    deadline = time.monotonic() + 60
    while True:
        generation, ids, base = processes.base(2)
        one, other = ids.values()
        back = _swapped.pop(processes.group, -1) == generation
        epoch = processes.publish(generation, base, base if back else {one: base[other], other: base[one]})
        try:
            processes.wait_for_acks(Applied, epoch, 2, within_s=10)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        else:
            if not back:
                _swapped[processes.group] = generation
            return


def goes_on(processes: Processes) -> None:
    """Records that are written from now on are processed, of all partitions."""
    offset = processes.produced + 5

    def processed() -> bool:
        newest = {line["place"]: line["offset"] for line in processes.lines() if line["what"] == "record"}
        return len(newest) == processes.partitions and min(newest.values()) >= offset

    wait_until(processed, what=f"offset {offset} of all partitions processed", within_s=20)


def assert_unharmed(processes: Processes) -> None:
    """All processes end by themselves, without an error, and nothing is lost."""
    processes.finish()

    assert processes.failed() == []
    assert processes.missing() == []
    assert processes.overlaps() == []


def both_say(processes: Processes, text: str) -> None:
    wait_until(lambda: {*processes.logged(text)} == {"a", "b"}, what=f"{text!r} of both members", within_s=40)


@pytest.mark.parametrize("trouble", ["refuse", "black_hole"])
def test_records_go_on_while_the_topics_brokers_are_away_and_following_comes_back(
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
    group.wait_for_acks(Accepted, epoch, 2)

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
    assert offsets_partition(group.group) in range(4)
    proxied.proxies[2].black_hole()
    goes_on(group)
    generation, ids, base = group.base(2)
    epoch = group.publish(generation, base, one_moved(base, ids["a"], ids["b"]))
    group.wait_for_acks(Accepted, epoch, 2)
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


@pytest.fixture
def plain(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Make]:
    made: list[Processes] = []

    def make(name: str) -> Processes:
        made.append(Processes(broker.bootstrap_servers, name, tmp_path, partitions=4))
        return made[-1].__enter__()

    yield make
    for processes in made:
        processes.__exit__(None, None, None)


def test_members_that_start_before_the_topics_are_there_follow_once_they_are(plain: Make) -> None:
    processes = plain("early")
    delete(processes.bootstrap, processes.control, processes.acks)
    for who in "ab":
        processes.start(who)
    processes.base(2)
    both_say(processes, AWAY)
    goes_on(processes)

    create_topics(processes.bootstrap, {processes.control: 1, processes.acks: 1})
    both_say(processes, BACK)
    apply_a_plan(processes)

    assert_unharmed(processes)


def test_deleted_topics_stop_nothing_and_new_ones_are_followed(plain: Make) -> None:
    processes = plain("deleted")
    start(processes)

    delete(processes.bootstrap, processes.control, processes.acks)
    both_say(processes, AWAY)
    goes_on(processes)
    assert (
        admin_client(processes.bootstrap)
        .list_topics(timeout=10)
        .topics.keys()
        .isdisjoint({processes.control, processes.acks})
    )
    create_topics(processes.bootstrap, {processes.control: 1, processes.acks: 1})
    both_say(processes, BACK)
    apply_a_plan(processes)

    assert_unharmed(processes)


def test_damaged_records_on_both_topics_are_ignored(plain: Make) -> None:
    processes = plain("damaged")
    start(processes)
    _, _, base = processes.base(2)
    cluster = json.dumps({"cluster": processes.cluster, "group": processes.group}, separators=(",", ":"))
    of_acks = f'{cluster[:-1]},"kind":"release","id":"{processes.topic}-0"}}'
    producer = Producer({"bootstrap.servers": processes.bootstrap, "log_level": 0})
    for key, topic in ((cluster, processes.control), (of_acks, processes.acks)):
        for value in (
            b"",
            b"\xff",
            b"{}",
            b"[" * 100_000,
            b'{"schema":1,"v":1,"epoch":' + b"9" * 5000 + b"}",
        ):
            producer.produce(topic, key=key.encode(), value=value, partition=0)
    assert producer.flush(10) == 0

    both_say(processes, "damaged")
    goes_on(processes)
    apply_a_plan(processes)

    assert base
    assert processes.logged("acknowledgement is damaged") == ["a", "b"]
    assert_unharmed(processes)


def delete(bootstrap: str, *topics: str) -> None:
    admin = admin_client(bootstrap)
    for future in admin.delete_topics(list(topics)).values():
        future.result()
    wait_until(
        lambda: admin.list_topics(timeout=10).topics.keys().isdisjoint(topics), what=f"{topics} deleted"
    )


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.WRITE], ids=["read", "write"])
def test_rights_taken_away_stop_nothing_and_given_back_are_used(
    secured: Secured, tmp_path: Path, operation: AclOperation
) -> None:
    user, name = f"trouble-{operation.name}", f"forbidden-{operation.name}".lower()
    secured.add_user(user)
    with Processes(
        secured.open_servers, name, tmp_path, partitions=4, config=secured.properties(user)
    ) as processes:
        rights: list[Right] = [
            *(
                (AclOperation.READ, ResourceType.TOPIC, topic)
                for topic in (processes.topic, processes.control)
            ),
            *(
                (AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
                for topic in (processes.control, processes.acks)
            ),
            (AclOperation.READ, ResourceType.TOPIC, processes.acks),
            (AclOperation.WRITE, ResourceType.TOPIC, processes.acks),
            (AclOperation.READ, ResourceType.GROUP, processes.group),
        ]
        secured.allow(user, *rights)
        start(processes)

        forbid(secured, user, operation, processes.acks)
        generation, ids, base = processes.base(2)
        processes.publish(generation, base, one_moved(base, ids["a"], ids["b"]))
        both_say(processes, AWAY if operation == AclOperation.READ else "cannot be written")
        goes_on(processes)
        secured.allow(user, (operation, ResourceType.TOPIC, processes.acks))
        if operation == AclOperation.READ:
            both_say(processes, BACK)
        apply_a_plan(processes)

        assert_unharmed(processes)


def forbid(secured: Secured, user: str, operation: AclOperation, topic: str) -> None:
    made = partial(
        AclBindingFilter,
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    for future in secured.admin.delete_acls([made()]).values():
        removed: list[AclBinding] = future.result(timeout=10)
        assert len(removed) == 1
