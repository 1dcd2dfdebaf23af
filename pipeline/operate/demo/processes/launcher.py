"""The topics of a scenario, and the processes that produce and consume."""

import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any, final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.child_python import module_command
from pipeline.config.model import Config
from pipeline.errors import BrokerUnavailableError, PipelineError
from pipeline.kafka import cluster
from pipeline.kafka.errors import explained
from pipeline.operate.demo.processes import java, traffic
from pipeline.operate.demo.scenario import Group, Scenario

_TIMEOUT_S = 30.0
_AGAIN_AFTER_S = 0.5
_STOPPED_WITHIN_S = 6.0
# Otherwise the slowest consumer would fill the disk.
_TOPIC_CONFIG = {"retention.bytes": str(64 * 1024 * 1024), "segment.bytes": str(8 * 1024 * 1024)}


def create_stream_topics(bootstrap: str, config: Config) -> None:
    """Create the stream's topics before the stream does, since following consumers need them.

    Raises:
        BrokerUnavailableError: The broker did not create them.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline_s = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            with explained("the Kafka cluster cannot be used"):
                cluster.inspect(admin, config.control, timeout_s=config.source.request_timeout_s)
        except BrokerUnavailableError:
            # On a busy machine a new topic has no leader for a moment.
            if time.monotonic() > deadline_s:
                raise
            time.sleep(_AGAIN_AFTER_S)
        else:
            return


@final
class Processes:
    """The producer and the groups, a process each; close it after use. Their output is this process's."""

    def __init__(self, bootstrap: str, scenario: Scenario) -> None:
        """Create the topics of the scenario with their first burst, and start all processes.

        For a following group, the stream's topics must exist; for one in Java, its jar (`java.make_jar`).

        Raises:
            BrokerUnavailableError: The broker did not create the topics.
        """
        _create_topics(bootstrap, scenario)
        # At once, or the stream sees empty topics and then a false arrival rate.
        traffic.burst(bootstrap, scenario)
        self._processes = {
            "the producer": _start("traffic", bootstrap, scenario),
            **{
                f"the consumers of {group.group_id}": _start_java(bootstrap, group)
                if group.is_java
                else _start("members", bootstrap, replace(scenario, groups=(group,)))
                for group in scenario.groups
            },
        }

    def check(self) -> None:
        """Raise if a process has ended.

        Raises:
            PipelineError: A process ended unexpectedly.
        """
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise PipelineError(
                    f"{name} ended with status {process.returncode}, and the demo cannot go on; see its log"
                )

    def close(self) -> None:
        """End all of them."""
        end(self._processes.values())


def end(processes: Collection["subprocess.Popen[Any]"]) -> None:
    """Ask all to end, by closing their stdin, then wait for each, and kill those that take too long."""
    for process in processes:
        if process.stdin:
            process.stdin.close()
    deadline = time.monotonic() + _STOPPED_WITHIN_S
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.wait()


def _create_topics(bootstrap: str, scenario: Scenario) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(topic.name, topic.partitions, 1, config=_TOPIC_CONFIG) for topic in scenario.topics]
    try:
        for future in admin.create_topics(wanted, operation_timeout=_TIMEOUT_S).values():
            future.result(_TIMEOUT_S)
    except KafkaException as error:
        raise BrokerUnavailableError(f"the demo's topics could not be created: {error}") from error


def _start(module: str, bootstrap: str, scenario: Scenario) -> "subprocess.Popen[bytes]":
    name = f"pipeline.operate.demo.processes.{module}"
    return _run([*module_command(name), bootstrap, scenario.to_json()])


def _start_java(bootstrap: str, group: Group) -> "subprocess.Popen[bytes]":
    return _run(java.command(bootstrap, group))


def _run(command: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        # Ctrl-C signals the whole foreground group; the consumers leave when the demo ends them.
        start_new_session=True,
    )
