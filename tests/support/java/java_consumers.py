"""Plain Java consumers, each a console consumer of Kafka in a process of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.brokers.kafka_tools import java_of_tools

_COMMAND = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_ASSIGNORS = "org.apache.kafka.clients.consumer"
_ENDED_WITHIN_S = 20


@contextmanager
def java_consumer(bootstrap: str, *, group: str, topic: str, assignors: tuple[str, ...]) -> Iterator[None]:
    """A member with these classes of Kafka as its list; what it reads is thrown away."""
    listed = ",".join(f"{_ASSIGNORS}.{name}" for name in assignors)
    command = [*java_of_tools(), "-Xmx128m", _COMMAND]
    properties = {"partition.assignment.strategy": listed, "heartbeat.interval.ms": "300"}
    options = [f"--consumer-property={name}={value}" for name, value in properties.items()]
    process = subprocess.Popen(
        [*command, "--bootstrap-server", bootstrap, "--topic", topic, "--group", group, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(_ENDED_WITHIN_S)
