"""Consumers in Java, many in one process, with the face of the members that run in Python."""

import json
import logging
import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from assignor.protocol.acks import Applied
from assignor.strategies.catalogue import RebalanceProtocol
from tests.support.followers.group_members import Members, PartitionKey, ThreadedMember
from tests.support.followers.plugin_setup import PluginSetup, all_to_one
from tests.support.followers.stays import Stay
from tests.support.java.java_jar import NEWEST, JavaJar
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

EAGER = "lagwise.follow.LagwiseAssignor"
COOPERATIVE = "lagwise.follow.LagwiseCooperativeAssignor"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE_STICKY = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
OF_PROTOCOL = {RebalanceProtocol.EAGER: EAGER, RebalanceProtocol.COOPERATIVE: COOPERATIVE}


class JavaHost:
    """A Java process with consumers, and with more jars by their coordinates; a context manager."""

    def __init__(self, jar: JavaJar, version: str = NEWEST, *, more: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            jar.command("lagwise.follow.Members", version=version, more=more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._members: dict[str, JavaMember] = {}
        self.said: list[str] = []
        """What its clients and the jar have logged."""
        self._threads = [threading.Thread(target=f, daemon=True) for f in (self._read, self._listen)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "JavaHost":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            for thread, pipe in zip(self._threads, (self._process.stdout, self._process.stderr), strict=True):
                thread.join(10)
                assert pipe is not None
                pipe.close()

    def start(self, member: "JavaMember", order: Mapping[str, Any]) -> None:
        self._members[member.name] = member
        self.order(member, {**order, "do": "start"})

    def order(self, member: "JavaMember", order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**order, "who": member.name}) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            event = json.loads(line)
            self._members[event["who"]].see(event)

    def _listen(self) -> None:
        for line in self._process.stderr or ():
            self.said.append(line.rstrip())


class JavaMember(ThreadedMember):
    """A member in Java.

    Args:
        host: The process that it is in.
        config: Properties of the consumer.
        topics: What it subscribes to.
        following: Whether it is a `FollowingConsumer`, or a plain `KafkaConsumer`.
        commits: Whether it commits what it has read.

    Attributes:
        failed: What its consumer threw, if it did.
    """

    def __init__(
        self,
        host: JavaHost,
        config: Mapping[str, str],
        topics: Sequence[str],
        *,
        following: bool = True,
        commits: bool = True,
    ) -> None:
        self._host, self._config, self._topics = host, config, topics
        self._options = {"following": following, "commits": commits}
        self._closed = threading.Event()
        self.failed: str | None = None
        super().__init__()

    def rejoin(self) -> None:
        """Make its group rebalance."""
        self._host.order(self, {"do": "rejoin"})

    def _run(self) -> None:
        topics = dict.fromkeys(self._topics, "")
        self._host.start(self, {**self._options, "topics": topics, "config": dict(self._config)})
        self._stopping.wait()
        self._host.order(self, {"do": "stop"})
        assert self._closed.wait(20), "the member did not close"

    def see(self, event: Mapping[str, Any]) -> None:
        """Take in a line that it wrote."""
        places = (
            list(zip(event.get("topics", ()), event.get("places", ()), strict=True))
            if "topics" in event
            else []
        )
        match event["what"]:
            case "record":
                self.read.add((event["topic"], event["place"], event["offset"]))
            case "gained":
                self._begun.update(dict.fromkeys(places, event["at"]))
            case "revoked" | "lost":
                self._give_up(places, event["at"])
            case "joined":
                self._see(generation=event["generation"], member_id=event["member"], owned=places)
            case "failed":
                self.failed = event["problem"]
            case "closed":
                self._closed.set()

    def _give_up(self, places: Sequence[PartitionKey], at_s: float) -> None:
        for place in places:
            start = self._begun.pop(place, None)
            if start is not None:
                self.stays.append(Stay(place=place, who=self.name, start=start, end=at_s))


def properties(bootstrap: str, group: str, assignors: Sequence[str], **more: str) -> dict[str, str]:
    """Of a consumer; the names of more have underscores for dots."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "partition.assignment.strategy": ",".join(assignors),
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "session.timeout.ms": "20000",
        "heartbeat.interval.ms": "300",
        "lagwise.cluster": "local",
        "lagwise.control.topic": f"{group}-control",
        "lagwise.acks.topic": f"{group}-acks",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def java_member(
    host: JavaHost,
    setup: PluginSetup,
    *assignors: str,
    following: bool = True,
    commits: bool = True,
    **more: str,
) -> JavaMember:
    """A member of the group of a test; it reads its topic."""
    config = properties(setup.bootstrap, setup.name, assignors, **more)
    return JavaMember(host, config, [setup.name], following=following, commits=commits)


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


def none_failed(members: Members) -> bool:
    """Whether no consumer has thrown anything at its user."""
    return all(one.failed is None for one in members.gone if isinstance(one, JavaMember))
