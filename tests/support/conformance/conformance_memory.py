"""A group in memory for the conformance kit: the follower's state machine, without a broker, a client or a process.

What it cannot show, because a client does it: kills, outages, commits as the broker stores them, the reader's start.
"""

import signal
import time
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from assignor.clients.confluent import reader
from assignor.clients.confluent.topics import FollowTopics
from assignor.clients.control import ControlState
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assigned,
    Change,
    Event,
    PlanSeen,
    Tell,
    Tick,
)
from assignor.protocol import control
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord
from tests.conformance.group import PARTITIONS, Group
from tests.support.followers.follow_plans import CLUSTER, GROUP, key_of
from tests.support.followers.follow_world import TOPIC, Node, World

_ACTS_PER_LOOK = 4


class _Written(NamedTuple):
    """A record of the control topic."""

    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]
    is_aborted: bool = False


class _Lines(World):
    """Members that say what they do, in the words that the kit reads, and read the control topic for themselves."""

    def __init__(self) -> None:
        super().__init__(Random(0), nodes=0, partitions=PARTITIONS)
        self.lines: list[dict[str, Any]] = []
        self.written: list[_Written] = []
        self._controls: dict[str, tuple[ControlState, int]] = {}

    def start_as(self, who: str) -> None:
        node = Node(name=who, received=len(self.acks))
        self.nodes.append(node)
        self._join(node)

    def step(self) -> None:
        """Everybody who is awake goes on a little."""
        for _ in range(_ACTS_PER_LOOK):
            self.now_s += 0.01
            for node in self.nodes:
                if not node.stopped:
                    self.act(node, late=False)

    def _say(self, node: Node, what: str, **more: Any) -> None:
        self.lines.append({"who": node.name, "what": what, "at": float(len(self.lines)), **more})

    def _in_callback(self, node: Node, event: Event) -> None:
        super()._in_callback(node, event)
        if isinstance(event, Assigned):
            places = sorted(number for _, number in event.places)
            self._say(node, "joined", generation=event.generation, member=event.member, places=places)

    def _carry_out(self, node: Node, action: Action) -> None:
        if isinstance(action, Tell) and action.places:
            places = {"places": sorted(number for _, number in action.places)}
            generation = {"generation": node.state.generation} if action.change is Change.GAINED else {}
            self._say(node, action.change.name.lower(), **places, **generation)
        super()._carry_out(node, action)

    def _read_topics(self, node: Node, *, late: bool) -> None:
        del late
        acks = tuple(self.acks[node.received :])
        node.received += len(acks)
        plan = self._newest_of(node).plan(round(time.time() * 1000))
        news: list[Event] = [AcksSeen(acks=acks)] if acks else []
        # A plan is decoded once.
        news += [PlanSeen(plan=plan)] if plan is not node.state.offered else []
        for event in (*news, Tick()):
            while node.todo:
                self._carry_out(node, node.todo.popleft())
            self._feed(node, event)

    def _newest_of(self, node: Node) -> ControlState:
        fresh = ControlState(cluster=CLUSTER, group=GROUP), 0
        state, so_far = self._controls.get(node.name, fresh)
        reads_all = reader.reader_config({"group.id": GROUP})["isolation.level"] != "read_committed"
        for one in self.written[so_far:]:
            if reads_all or not one.is_aborted:
                state.feed(one.key, one.value, cast("control.headers", one.headers))
        self._controls[node.name] = state, len(self.written)
        return state

    def _write(self, node: Node, ack: AnyAck) -> None:
        del node
        topics = SimpleNamespace(is_up=True, _writer=SimpleNamespace(write=self.acks.append))
        FollowTopics.write(cast("FollowTopics", topics), ack)

    def _check_owners(self) -> None:
        """The kit does."""

    def _check_begun(self, ack: AnyAck) -> None:
        """The kit does."""


class MemoryGroup(Group):
    """As the kit's own group; each look at it lets its members go on."""

    def __init__(self) -> None:
        self._world = _Lines()
        self.cluster, self.group, self.topic, self.partitions = CLUSTER, GROUP, TOPIC, PARTITIONS
        self.control, self.acks = "control", "acks"
        self.malformed: list[str] = []
        self.migration = "disabled"
        self._epoch = int(time.time())
        self._said: list[ControlRecord] = []
        self._crashed, self._buried = list[str](), set[str]()

    def start(self, who: str, **_: Any) -> None:
        self._world.start_as(who)

    def alive(self) -> list[str]:
        return [node.name for node in self._world.nodes]

    def ended(self, who: str) -> bool:
        return who not in self.alive()

    def crashed(self) -> list[str]:
        return self._crashed

    def last_words(self, who: str) -> str:
        return f"no more of {who}"

    def die(self, who: str) -> None:
        """It ends by itself, and its session with it."""
        (node,) = (one for one in self._world.nodes if one.name == who)
        self._crashed.append(who)
        self._world.kill(node)
        self._world.evict(node.member)

    def interrupt(self, who: str, number: signal.Signals) -> None:
        for node in self._world.nodes:
            if node.name == who:
                node.stopped = number == signal.SIGSTOP

    def lines(self) -> list[dict[str, Any]]:
        self._world.step()
        return self._world.lines

    def all_acks(self) -> list[AnyAck]:
        self.fail_if_dead()
        self._world.step()
        return list(self._world.acks)

    def put_raw(self, topic: str, key: bytes, value: bytes | None, epoch: int | None) -> None:
        headers = [] if epoch is None else control.headers(epoch)
        if topic == self.control:
            self._world.written.append(_Written(key, value, headers))

    def put_aborted(self, record: ControlRecord) -> None:
        self._world.written.append(
            _Written(key_of(record), control.encode(record), control.headers(record.epoch), is_aborted=True)
        )

    def _write(self, record: ControlRecord) -> None:
        self.put_written(record, control.encode(record))
