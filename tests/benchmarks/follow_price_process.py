"""One consumer in a process of its own: how many threads and how much memory it has, once it has read a record.

python -m tests.benchmarks.follow_price_process '{"client":"confluent","follows":true,"servers":"…","group":"…",
"cluster":"…","topic":"…","control":"…","acks":"…","stays":false}'

One that stays goes on as a member until its standard input ends.
"""

import asyncio
import json
import re
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until


def main() -> None:
    """Print both as JSON."""
    options = json.loads(sys.argv[1])
    {"confluent-kafka": _confluent, "kafka-python": _kafka_python, "aiokafka": _aiokafka}[options["client"]](
        options
    )


def _report() -> None:
    status, memory = Path("/proc/self/status").read_text(), Path("/proc/self/smaps_rollup").read_text()
    found = {"threads": _number("Threads", status), "mib": _number("Rss", memory) / 1024}
    print(json.dumps(found), flush=True)  # noqa: T201 - its answer


def _is_over(options: dict[str, Any]) -> bool:
    """Whether the process need not stay a member any longer."""
    return not options["stays"] or bool(select.select([sys.stdin], [], [], 0)[0])


def _stay(options: dict[str, Any], poll: Callable[[], object]) -> None:
    while not _is_over(options):
        poll()


def _number(name: str, text: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    assert found is not None, name
    return int(found[1])


def _confluent(options: dict[str, Any]) -> None:
    config = {
        "bootstrap.servers": options["servers"],
        "group.id": options["group"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    if not options["follows"]:
        from confluent_kafka import Consumer  # noqa: PLC0415 - what is imported is part of the price

        consumer = Consumer(config)
        consumer.subscribe([options["topic"]])
        wait_until(lambda: consumer.poll(0.5) is not None, what="a record")
        _report()
        consumer.close()
        return
    from assignor.clients.confluent import Follower  # noqa: PLC0415 - as above

    topics = {"control_topic": options["control"], "acks_topic": options["acks"]}
    with Follower(config, [options["topic"]], **topics) as follower:
        wait_until(lambda: follower.poll(0.5) is not None, what="a record")
        wait_until(lambda: follower.poll(0.1) is None and follower._side.is_up, what="lagwise's topics")
        _report()
        _stay(options, lambda: follower.poll(0.5))


def _kafka_python(options: dict[str, Any]) -> None:
    from kafka import KafkaConsumer  # noqa: PLC0415 - as above

    config = _consumer(options)
    if not options["follows"]:
        consumer = KafkaConsumer(options["topic"], **config)
        wait_until(lambda: consumer.poll(timeout_ms=500), what="a record")
        _report()
        consumer.close()
        return
    from assignor.clients.kafka_python import Following  # noqa: PLC0415 - as above

    with Following(**_following(options)) as following:
        consumer = KafkaConsumer(
            options["topic"], **config, partition_assignment_strategy=following.assignors
        )
        following.attach(consumer)

        def has_read() -> bool:
            following.keep_up()
            return bool(consumer.poll(timeout_ms=500))

        wait_until(has_read, what="a record")
        wait_until(
            lambda: following._background._reader is not None and following._background._reader.is_sound,
            what="the control topic",
        )
        _report()
        _stay(options, has_read)
        consumer.close()


def _aiokafka(options: dict[str, Any]) -> None:
    asyncio.run(_aiokafka_runs(options))


async def _aiokafka_runs(options: dict[str, Any]) -> None:
    from aiokafka import AIOKafkaConsumer  # noqa: PLC0415 - as above

    config = _consumer(options)
    if not options["follows"]:
        async with AIOKafkaConsumer(options["topic"], **config) as consumer:
            await consumer.getone()
            _report()
        return
    from assignor.clients.aiokafka import Following  # noqa: PLC0415 - as above

    async with Following(**_following(options)) as following:
        consumer = AIOKafkaConsumer(
            options["topic"], **config, partition_assignment_strategy=[following.assignor]
        )
        following.attach(consumer)
        async with consumer:
            await consumer.getone()
            while not following._background._is_reading:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.05)
            _report()
            while not _is_over(options):
                await consumer.getmany(timeout_ms=500)


def _consumer(options: dict[str, Any]) -> dict[str, Any]:
    """Settings of the consumer, which kafka-python and aiokafka name alike."""
    return {
        "bootstrap_servers": options["servers"],
        "group_id": options["group"],
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }


def _following(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "bootstrap_servers": options["servers"],
        "cluster": options["cluster"],
        "group_id": options["group"],
        "control_topic": options["control"],
        "acks_topic": options["acks"],
    }


if __name__ == "__main__":
    main()
