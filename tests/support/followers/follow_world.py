"""A model of a classic, eager consumer group whose members are followers, and of what can go wrong with them.

Each member carries out the actions of its state one by one, so it can be killed or stopped between any two of
them. Records of the acks topic arrive late and more than once. Of Kafka the model knows what followers rely on:
a commit counts only in the member's own generation; a new generation begins only when every member has given
up what it reads or was evicted; a member that does not lead may be assigned the same generation again, unnoticed
by the others; and generations start over in a group that was empty.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random

from assignor.clients.follower import rules as follower_state_rules
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assign,
    Assigned,
    Commit,
    Committed,
    Event,
    FollowerState,
    Found,
    Instant,
    Look,
    Looked,
    Lost,
    Mark,
    PartitionKey,
    PlanSeen,
    Rejoin,
    Revoked,
    Settings,
    Tick,
    TopicsAway,
    Unassign,
    Undelivered,
    Write,
)
from assignor.protocol.acks import AnyAck, Applied, Follows, Release
from assignor.protocol.control import ControlRecord
from assignor.protocol.marks import HandOverMark
from tests.support.followers.follow_plans import GROUP, plan

TOPIC = "t"
SETTINGS = Settings(group=GROUP, take_timeout_s=9.0, doubt_timeout_s=9.0)
# Longer than any follower waits: who did nothing for so long has nothing left to do.
_STILL_S = 3 * SETTINGS.take_timeout_s


class BrokenPromiseError(AssertionError):
    """Two owners, a record that nobody processed, half a plan, or a group that stands still."""


@dataclass(eq=False, kw_only=True)
class Node:
    """One consumer process."""

    name: str
    received: int
    """Number of records of the acks topic it has read."""
    state: FollowerState = field(default_factory=lambda: FollowerState(settings=SETTINGS))
    todo: deque[Action] = field(default_factory=deque)
    reading: dict[PartitionKey, int] = field(default_factory=dict)
    """What its consumer is assigned, with the next record to read."""
    marks: dict[PartitionKey, int] = field(default_factory=dict)
    """What its user has finished, also of partitions it no longer reads."""
    member: str = ""
    assigned: Assigned | None = None
    """Waits for its next poll."""
    undelivered: deque[AnyAck] = field(default_factory=deque)
    """What its client will say did not arrive."""
    is_deaf: bool = False
    """The topics are away for it."""
    stopped: bool = False
    dead: bool = False


class World:
    """One group over one topic."""

    withdraws = 0.02
    """How often a member finds its plan withdrawn when it looks, as if its clock were ahead."""
    undelivered = 0.01
    """How often an acknowledgement is said not to have arrived; half of those have."""
    loses_topics = True
    """Lagwise's topics may be away for a member."""

    def __init__(self, random: Random, *, nodes: int = 3, partitions: int = 4) -> None:
        self.random = random
        self.places = [(TOPIC, p) for p in range(partitions)]
        self.nodes: list[Node] = []
        self.members: dict[str, Node] = {}
        """Those whom the coordinator knows, dead ones before their session ends included."""
        self.joined: set[str] = set()
        self.rebalancing = False
        self.generation = 0
        self.base: dict[str, frozenset[PartitionKey]] = {}
        self.acks: list[AnyAck] = []
        self.plan: ControlRecord | None = None
        self.involved: dict[int, set[str]] = {}
        """Members that give or take something, by plan epoch."""
        self.committed = dict.fromkeys(self.places, 0)
        self.marks: dict[PartitionKey, HandOverMark] = {}
        """Of the commits that have one."""
        self.takes = 0
        """Hand-overs that were finished."""
        self.processed = dict.fromkeys(self.places, 0)
        self.now_s = 0.0
        self.acted_at_s = 0.0
        """When a follower was last told to do anything."""
        self._names = 0
        for _ in range(nodes):
            self.start()

    # What happens to the group.

    def start(self) -> None:
        node = Node(name=self._new_name("n"), received=len(self.acks))
        self.nodes.append(node)
        self._join(node)

    def kill(self, node: Node) -> None:
        """The process is gone; the coordinator waits for its heartbeats."""
        node.dead = True
        self.nodes.remove(node)

    def evict(self, member: str) -> None:
        """A session ends; the member does not know."""
        del self.members[member]
        self.joined.discard(member)
        self.rebalancing = True
        if not self.members:
            self.generation = 0
        self._begin_generation()

    def assign_again(self, node: Node) -> None:
        """What a member gets that does not lead and subscribes once more; it may never hear what became of a commit."""
        current = node.member in self.members and node.state.settled and not self.rebalancing
        is_busy = bool(node.todo) and not isinstance(node.todo[0], Commit | Look)
        if current and not is_busy and node.assigned is None and node.member != min(self.members):
            if node.todo and isinstance(unheard := node.todo[0], Commit):
                node.todo.popleft()
                self._commit(node, unheard, is_heard=False)
            self._in_callback(node, Revoked())
            node.assigned = self._assignment_of(node.member)

    def publish(self) -> None:
        """A plan at random for the base of this generation."""
        target: dict[str, list[int]] = {member: [] for member in self.base}
        for place in self.places:
            target[self.random.choice(sorted(target))].append(place[1])
        base = {member: [p for _, p in places] for member, places in self.base.items()}
        epoch = self.plan.epoch + 1 if self.plan else 1
        self.plan = plan(base, target, epoch=epoch, generation=self.generation, topic=TOPIC)
        self.involved[epoch] = {name for name in base if set(base[name]) != set(target[name])}

    # What a node does by itself.

    def act(self, node: Node, *, late: bool = True) -> None:
        """One action that is due, or else a look at the group or at the topics.

        Args:
            node: Runs.
            late: Records may arrive late or again, and the look at the group may have to wait.
        """
        if node.todo:
            self._carry_out(node, node.todo.popleft())
        elif not (late and self.random.random() < 0.5):
            self._poll(node)
        if not node.todo:
            self._read_records(node)
            self._read_topics(node, late=late)
        self._check_owners()

    def _poll(self, node: Node) -> None:
        if node.member not in self.members:
            self._in_callback(node, Lost())
            self._join(node)
        elif node.assigned is not None:
            assigned, node.assigned = node.assigned, None
            self._in_callback(node, assigned)
        elif self.rebalancing and node.member not in self.joined:
            self._in_callback(node, Revoked())
            self.joined.add(node.member)
            self._begin_generation()

    def _read_records(self, node: Node) -> None:
        for place, offset in node.reading.items():
            node.reading[place] = offset + self.random.randint(0, 2)
            self.processed[place] = max(self.processed[place], node.reading[place])
            if self.random.random() < 0.5:
                node.marks[place] = node.reading[place]
                if self._is_current(node):
                    self._store(place, node.marks[place], None)

    def lose_topics(self, node: Node) -> None:
        """It hears nothing until `find_topics`; while the topics are made anew, what others write is lost on it."""
        if self.loses_topics and node.state.settled and not node.todo:
            node.is_deaf = True
            self._feed(node, TopicsAway())

    def find_topics(self, node: Node) -> None:
        """It hears again, from now on or from where it was."""
        if node.is_deaf:
            node.is_deaf = False
            node.received = self.random.choice([node.received, len(self.acks)])

    def _read_topics(self, node: Node, *, late: bool) -> None:
        """As the driver does: a tick each time, and news only where there are any."""
        if node.is_deaf:
            self._feed(node, Tick())
            return
        start = (
            self.random.randint(0, node.received) if late and self.random.random() < 0.1 else node.received
        )
        node.received = self.random.randint(node.received, len(self.acks)) if late else len(self.acks)
        if start < node.received:
            self._feed(node, AcksSeen(acks=tuple(self.acks[start : node.received])))
        if not node.todo and node.undelivered:
            self._feed(node, Undelivered(ack=node.undelivered.popleft()))
        if not node.todo:
            withdrawn = late and self.random.random() < self.withdraws
            offered = None if withdrawn else self.plan
            if offered is not node.state.offered:
                self._feed(node, PlanSeen(plan=offered))
        if not node.todo:
            self._feed(node, Tick())

    def _feed(self, node: Node, event: Event) -> None:
        now = Instant(monotonic_s=self.now_s, wall_ms=0)
        node.state, actions = follower_state_rules.advance(node.state, event, now)
        if actions:
            self.acted_at_s = self.now_s
            node.todo.extend(actions)

    def _in_callback(self, node: Node, event: Event) -> None:
        """What a client calls back for is done before anything else, all but requests."""
        node.todo = deque(action for action in node.todo if not isinstance(action, Look))
        self._feed(node, event)
        while node.todo and not isinstance(node.todo[0], Commit | Look | Rejoin):
            self._carry_out(node, node.todo.popleft())

    def _carry_out(self, node: Node, action: Action) -> None:
        match action:
            case Assign():
                self._assign(node, action)
            case Unassign():
                node.reading = {}
            case Look():
                found = {
                    place: Found(offset=self.committed[place], mark=self.marks.get(place))
                    for place in action.places
                }
                self._feed(node, Looked(found=found))
            case Commit():
                self._commit(node, action)
            case Write():
                self._check_begun(action.ack)
                self._write(node, action.ack)
            case Rejoin():
                self._rejoin(node)

    def _assign(self, node: Node, action: Assign) -> None:
        reading = {}
        for place in action.places:
            start = action.offsets.get(place, self.committed[place])
            reading[place] = node.reading.get(place, start)
            if place not in node.reading:
                node.marks[place] = start
            if reading[place] > self.processed[place]:
                raise BrokenPromiseError(f"{place} starts at {start}, processed to {self.processed[place]}")
        node.reading = reading

    def _commit(self, node: Node, action: Commit, *, is_heard: bool = True) -> None:
        offsets = {
            place: node.marks[place] if offset is None else offset for place, offset in action.offsets.items()
        }
        accepted = self._is_current(node)
        if accepted:
            for place, offset in offsets.items():
                self._store(place, offset, action.marks[place])
        self._feed(node, Committed(accepted=accepted and is_heard, offsets=offsets))

    def _store(self, place: PartitionKey, offset: int, mark: HandOverMark | None) -> None:
        if offset < self.committed[place]:
            raise BrokenPromiseError(
                f"the commit of {place} goes from {self.committed[place]} back to {offset}"
            )
        self.committed[place] = offset
        self.marks.pop(place, None)
        if mark is not None:
            self.marks[place] = mark
            self.takes += mark.kind == "taken"

    def _write(self, node: Node, ack: AnyAck) -> None:
        is_lost = node.is_deaf or self.random.random() < self.undelivered
        if is_lost:
            node.undelivered.append(ack)
        if not is_lost or self.random.random() < 0.5:
            self.acks.append(ack)

    def _rejoin(self, node: Node) -> None:
        self._in_callback(node, Revoked())
        self.members.pop(node.member, None)
        self._join(node)

    def _is_current(self, node: Node) -> bool:
        return node.member in self.members and node.state.generation == self.generation

    # The coordinator.

    def _join(self, node: Node) -> None:
        node.member, node.assigned = self._new_name("m"), None
        self.members[node.member] = node
        self.joined.add(node.member)
        self.rebalancing = True
        self._begin_generation()

    def _begin_generation(self) -> None:
        self.joined &= set(self.members)
        if not self.members or self.joined != set(self.members):
            return
        self.generation += 1
        self.rebalancing, self.joined = False, set()
        names = self.random.sample(sorted(self.members), len(self.members))
        self.base = {name: frozenset(self.places[number :: len(names)]) for number, name in enumerate(names)}
        for name, node in self.members.items():
            node.assigned = self._assignment_of(name)

    def _assignment_of(self, member: str) -> Assigned:
        return Assigned(member=member, generation=self.generation, places=self.base[member])

    def _new_name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names:04}"

    # What must hold.

    def _check_owners(self) -> None:
        """One owner at most among those the coordinator has not evicted, stopped ones included."""
        owners: dict[PartitionKey, str] = {}
        for name, node in sorted(self.members.items()):
            for place in () if node.dead else node.reading:
                if place in owners:
                    raise BrokenPromiseError(f"{place} is read by {owners[place]} and {name}")
                owners[place] = name

    def _check_begun(self, ack: AnyAck) -> None:
        """Nothing is given away before all whom the plan involves have accepted it."""
        if isinstance(ack, Release):
            accepted = {said.member for said in self.acks if is_accepted(said, epoch=ack.epoch)}
            missing = self.involved[ack.epoch] - accepted
            if missing:
                raise BrokenPromiseError(f"plan {ack.epoch} is begun without {', '.join(sorted(missing))}")

    def become_quiet(self, *, rounds: int = 120) -> None:
        """Nothing happens any more, all records arrive: every partition must be read again."""
        self.undelivered, self.acted_at_s = 0.0, self.now_s
        for node in self.nodes:
            node.stopped = False
            self.find_topics(node)
        for member in [member for member, node in self.members.items() if node.dead]:
            self.evict(member)
        if not self.nodes:
            self.start()
        for _ in range(rounds):
            self.now_s += 1.0
            for node in self.nodes:
                self.act(node, late=False)
            if self.now_s - self.acted_at_s > _STILL_S:
                break
        read = [place for node in self.nodes for place in node.reading]
        if sorted(read) != self.places:
            raise BrokenPromiseError(f"when quiet, {read} are read of {self.places}")
        if any(not node.state.settled or node.state.marked(Mark.RELEASED) for node in self.nodes):
            raise BrokenPromiseError("a hand-over is not finished though all is quiet")

    def count(self, kind: type[Release | Applied]) -> int:
        """Acknowledgements of a kind, those said again left out."""
        return len({ack for ack in self.acks if isinstance(ack, kind)})


def is_accepted(ack: AnyAck, *, epoch: int) -> bool:
    return isinstance(ack, Follows) and ack.epoch == epoch
