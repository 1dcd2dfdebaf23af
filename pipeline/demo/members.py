"""One group's process: `python -m pipeline.demo.members BOOTSTRAP GROUP` consumes until its stdin closes.

The members of a group are threads of one process. Each has a client with sockets, heartbeats and a member id
of its own, and librdkafka runs those outside Python: to the broker they are as separate as processes are; a
process each would only take the memory of a dozen interpreters. Groups are processes, so that a stalled one
stalls nobody else, and can be stopped by hand to see its lag grow.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from confluent_kafka import Consumer, TopicPartition

from pipeline.demo.child import stop_with_parent
from pipeline.demo.scene import GROUPS, TOPICS, Group

_ROUND_S = 0.2


def main(bootstrap: str, group_id: str) -> None:
    """Run all members of the group."""
    group = next(group for group in GROUPS if group.group_id == group_id)
    stop = stop_with_parent()
    with ThreadPoolExecutor(len(group.speeds)) as pool:
        members = [
            pool.submit(_consume, bootstrap, group, number, stop) for number in range(len(group.speeds))
        ]
    for member in members:
        member.result()


def _consume(bootstrap: str, group: Group, number: int, stop: Event) -> None:
    consumer = Consumer(properties(bootstrap, group, number))
    if group.subscribes:
        consumer.subscribe(list(group.topics))
    else:
        taken = [topic for topic in TOPICS if topic.name in group.topics]
        consumer.assign([TopicPartition(topic.name, p) for topic in taken for p in range(topic.partitions)])
    at_once = round(group.speeds[number] * _ROUND_S)
    try:
        while not stop.wait(_ROUND_S):
            consumer.consume(at_once, timeout=0)
    finally:
        consumer.close()


def properties(bootstrap: str, group: Group, number: int) -> dict[str, str | int]:
    """What member `number` of the group makes its client from."""
    name = f"{group.group_id}-{number + 1}"
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group.group_id,
        "client.id": name,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 1000,
        # What is fetched ahead only takes memory here.
        "queued.min.messages": 1000,
        **({"group.instance.id": name} if group.is_static else {}),
        **group.properties,
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
