"""A KIP-848 group of three clients on three brokers with lagwise's assignor: its plans, its pokes, and what its members saw.

The readers of plans go through proxies, everything else past them.
"""

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pipeline.kafka import poke
from pipeline.kafka.poke import Outcome, Question
from pipeline.kafka.poke_member import CLIENT_ID
from pipeline.local.embedded.cluster import EmbeddedCluster
from pipeline.local.embedded.cluster_node import ClusterNode
from pipeline.publish.pokes import _in_process
from tests.support.brokers.broker import OFFSETS_PARTITIONS, OFFSETS_TOPIC, admin_client
from tests.support.brokers.cluster import ProxiedCluster, create_replicated_topics, proxied_cluster
from tests.support.brokers.describing import Describing
from tests.support.followers.broker_group import BrokerGroup
from tests.support.followers.follow_processes import Processes
from tests.support.go.franz import franz_member
from tests.support.java.broker_jar import ASSIGNOR, OF_THE_DEMO, brokers_with_jar
from tests.support.java.java_apps import Owned
from tests.support.java.java_jar import java_jar
from tests.support.waiting import wait_until

CLIENTS = ("confluent", "java", "franz")
PARTITIONS = 9
CONTROL = "plans-of-all"
_COPIES = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
_RECORDS_PER_S = 20.0
_READS, _READS_NOT = "Plans are read from control topic", "cannot be read"
_DEADLINE_S = 15
_DEAF, _DEAF_AFTER_S = "confluent", 30.0


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan on the control topic.

    Attributes:
        published_s: Monotonic time.
    """

    base: Owned
    target: Owned
    published_s: float

    @property
    def moved(self) -> set[int]:
        """Partitions that change hands."""
        return {
            n
            for member, places in self.base.items()
            for _, n in places - self.target.get(member, frozenset())
        }


@dataclass
class ThreeBrokerGroup:
    """The group, its brokers and its processes.

    Attributes:
        live: Processes that are members, or about to be.
        deaf: Number of restarts because a member had missed an assignment.
        whole_since_s: Monotonic time at which the group had all of its first members.
    """

    proxied: ProxiedCluster
    processes: Processes
    group: BrokerGroup
    describing: Describing
    random: Random
    live: set[str] = field(default_factory=set)
    deaf: int = 0
    whole_since_s: float = 0.0
    _there_and_back: list[Owned] = field(default_factory=list)
    _epoch: int = 0

    @property
    def cluster(self) -> EmbeddedCluster:
        return self.proxied.cluster

    def start(self, client: str) -> None:
        """A member with that client, and by its name."""
        self.processes.start(client, **_options(client))
        self.live.add(client)

    def at_rest(self) -> Owned:
        """What the members have by their ids; nothing unless it is all partitions, by the coordinator and by themselves."""
        found = self.describing.ask()
        if found is None or found.state != "STABLE":
            return {}
        members = found.members
        whole = sorted(n for one in members for n in one.has) == list(range(PARTITIONS))
        known = sorted(one.client_id for one in members) == sorted(self.live)
        told = {one.client_id: set(one.has) for one in members} == self.held()
        if not (whole and known and told and all(one.has == one.wanted for one in members)):
            return {}
        topic = self.processes.topic
        return {one.member_id: frozenset((topic, n) for n in one.has) for one in members}

    def settled(self, *, within_s: float = 120) -> Owned:
        """The same, once it is so."""
        found: list[Owned] = []
        deaf_from_s = time.monotonic() + _DEAF_AFTER_S

        def settle() -> bool:
            nonlocal deaf_from_s
            found[:] = [self.at_rest()]
            if not found[0] and time.monotonic() > deaf_from_s:
                self._restart_deaf()
                deaf_from_s = time.monotonic() + _DEAF_AFTER_S
            return bool(found[0])

        try:
            wait_until(settle, what=f"{sorted(self.live)} with all partitions", within_s=within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; asked: {self.describing.ask()}; told: {self.held()}") from error
        return found[0]

    def _restart_deaf(self) -> None:
        """Do what an operator does about a member of librdkafka that has missed an assignment.

        If the coordinator is killed while it answers, that client may never ask what it has: it keeps what it was
        told to give up, or does not read what it was given.
        """
        described = self.describing.ask()
        # While no coordinator answers, nobody knows what the member has missed.
        wanted = {one.client_id: set(one.wanted) for one in described.members} if described else {}
        if _DEAF in self.live and _DEAF in wanted and wanted[_DEAF] != self.held()[_DEAF]:
            self.deaf += 1
            self.processes.kill(_DEAF)
            self.start(_DEAF)

    def held(self) -> dict[str, set[int]]:
        """Partitions of each live process, as it was told."""
        held: dict[str, set[int]] = {who: set() for who in self.live}
        for line in sorted(self.processes.lines(), key=lambda line: line["at"]):
            match line["what"]:
                case "gained":
                    held.setdefault(line["who"], set()).update(line["places"])
                case "revoked" | "lost":
                    held.setdefault(line["who"], set()).difference_update(line["places"])
                case "hurt":
                    held[line["who"]] = set()
        return {who: held[who] for who in self.live}

    def given_up(self, since_s: float) -> list[int]:
        """Partitions that processes were told to give up since that monotonic time."""
        return sorted(
            n
            for line in self.processes.lines()
            if line["what"] in ("revoked", "lost") and line["at"] >= since_s
            for n in line["places"]
        )

    def last_change_s(self) -> float:
        """Monotonic time at which a member was last told of a partition."""
        return float(
            max(
                line["at"]
                for line in self.processes.lines()
                if line["what"] in ("gained", "revoked") and line["places"]
            )
        )

    def coordinator(self) -> ClusterNode:
        """The broker that assigns the group."""
        found: list[int] = []

        def known() -> bool:
            one = self.describing.ask()
            found[:] = [one.coordinator] if one is not None and one.coordinator >= 0 else []
            return bool(found) and self.cluster.node(found[0]).pid is not None

        wait_until(known, what="a coordinator")
        return self.cluster.node(found[0])

    def publish(self, base: Owned, target: Owned | None = None) -> Planned:
        """A plan for what the members have, which moves some partitions at random unless a target is given."""
        self._epoch += 1
        target = target or self.another(base)
        record = self.group.plan(base, target, epoch=self._epoch, cluster=self.cluster.cluster_id)
        self.group.publish(record)
        return Planned(base=base, target=target, published_s=time.monotonic())

    def another(self, base: Owned) -> Owned:
        """A target for these members: two to four partitions go to others, and nobody is left without."""
        places = {n: member for member, of in base.items() for _, n in of}
        for number in self.random.sample(range(PARTITIONS), self.random.randint(2, 4)):
            owner = places[number]
            if list(places.values()).count(owner) > 1:
                places[number] = self.random.choice([member for member in base if member != owner])
        target = {
            member: frozenset((self.processes.topic, n) for n, owner in places.items() if owner == member)
            for member in base
        }
        return target if target != base else self.another(base)

    def there_and_back(self) -> tuple[Owned, Owned]:
        """What the members have, and one of two targets that it is not: plans between them move the same partitions."""
        base = self.settled()
        if not self._there_and_back:
            self._there_and_back = [base, self.another(base)]
        there, back = self._there_and_back
        return (base, back if base == there else there)

    def poke(self, plan: Planned) -> Outcome | None:
        """What the job does after a publication."""
        return _in_process(self._question(plan))

    def poking(self, plan: Planned) -> "subprocess.Popen[str]":
        """The same process, which goes on by itself."""
        process = subprocess.Popen(
            poke.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(poke.encode(self._question(plan)))
        process.stdin.close()
        return process

    def pokes_in(self) -> int:
        """Members of pokes that the coordinator knows."""
        found = self.describing.ask()
        assert found is not None
        return sum(one.client_id == CLIENT_ID for one in found.members)

    def _question(self, plan: Planned) -> Question:
        return Question(
            properties={"bootstrap.servers": self.cluster.internal_servers, "log_level": "0"},
            group_id=self.group.name,
            members=tuple(member for member, places in plan.target.items() if places),
            deadline_s=_DEADLINE_S,
        )

    def is_applied(self, plan: Planned, *, within_s: float) -> bool:
        """Whether the members have the target, and know it, within that time."""
        with suppress(AssertionError):
            wait_until(
                lambda: self.at_rest() == plan.target, what="the target", within_s=within_s, every_s=0.1
            )
            return True
        return False

    def reads(self, node: ClusterNode) -> bool:
        """Whether the broker reads the control topic, by its own log."""
        log = log_of(node)
        return log.rfind(_READS) > log.rfind(_READS_NOT)


def log_of(node: ClusterNode) -> str:
    """What the broker has logged since its last start."""
    return (node.data_dir / "server.log").read_text(encoding="utf-8")


def _options(client: str) -> dict[str, Any]:
    if client == "java":
        command = java_jar().command("lagwise.follow.Members")
        return {"module": "tests.support.java.java_process", "command": command, "plain": "yes"}
    if client == "franz":
        return {"module": "tests.support.go.franz_process", "program": str(franz_member())}
    return {"new": "yes"}


@contextmanager
def three_brokers(folder: Path, **more: str) -> Iterator[ProxiedCluster]:
    """Brokers with the assignor, whose readers come by the proxies; more properties have underscores for dots."""
    properties = {
        "group_consumer_assignors": f"uniform,range,{ASSIGNOR}",
        "lagwise_control_topic": CONTROL,
        "group_consumer_session_timeout_ms": "6000",
        **more,
    }
    with (
        brokers_with_jar(OF_THE_DEMO),
        proxied_cluster(
            data_dir=folder / "cluster", names_itself="lagwise_bootstrap_servers", **properties
        ) as proxied,
    ):
        internal = proxied.cluster.internal_servers
        offsets = [_COPIES[n % len(_COPIES)] for n in range(OFFSETS_PARTITIONS)]
        create_replicated_topics(internal, {OFFSETS_TOPIC: offsets}, cleanup_policy="compact")
        _make_control_topic(internal, [1, 2, 3])
        yield proxied


def _make_control_topic(bootstrap: str, brokers: list[int]) -> None:
    create_replicated_topics(bootstrap, {CONTROL: [brokers]}, cleanup_policy="compact")


def make_control_topic_again(bootstrap: str, brokers: list[int]) -> None:
    """Delete it with all plans, and make it on these brokers only."""
    admin = admin_client(bootstrap)
    admin.delete_topics([CONTROL])[CONTROL].result()
    wait_until(lambda: CONTROL not in admin.list_topics(timeout=10).topics, what="the end of the topic")
    _make_control_topic(bootstrap, brokers)


@contextmanager
def three_clients(
    proxied: ProxiedCluster, name: str, folder: Path, *, seed: int
) -> Iterator[ThreeBrokerGroup]:
    """A group of one member of each client, at rest."""
    internal = proxied.cluster.internal_servers

    def make_topics(bootstrap: str, partitions: Mapping[str, int]) -> None:
        copies = {topic: [_COPIES[k % len(_COPIES)] for k in range(n)] for topic, n in partitions.items()}
        create_replicated_topics(bootstrap, copies, min_insync_replicas="2")

    config = {
        "group.protocol": "consumer",
        "group.remote.assignor": "lagwise",
        # The broker sets both times.
        "session.timeout.ms": None,
        "heartbeat.interval.ms": None,
        "partition.assignment.strategy": None,
    }
    with (
        Processes(
            internal,
            name,
            folder,
            partitions=PARTITIONS,
            config=config,
            make_topics=make_topics,
            records_per_s=_RECORDS_PER_S,
        ) as processes,
        Describing(internal, processes.group) as describing,
    ):
        made = ThreeBrokerGroup(
            proxied=proxied,
            processes=processes,
            group=BrokerGroup(bootstrap=internal, name=processes.group, control=CONTROL),
            describing=describing,
            random=Random(seed),
        )
        for client in CLIENTS:
            made.start(client)
        made.settled()
        made.whole_since_s = time.monotonic()
        yield made
