"""Drives the follower's state machine: events of the client and the topics go in, actions come out."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from confluent_kafka import Consumer, TopicPartition

from assignor.clients.clock import clock_s, now_ms
from assignor.clients.confluent.group import generation_of
from assignor.clients.confluent.reading import Reading
from assignor.clients.confluent.topics import FollowTopics
from assignor.clients.follower.rules import advance
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assign,
    Assigned,
    Change,
    Commit,
    Committed,
    Event,
    FollowerState,
    Instant,
    Look,
    Looked,
    Lost,
    Phase,
    PlanSeen,
    Rejoin,
    Revoked,
    Settings,
    Tell,
    Tick,
    TopicsAway,
    Unassign,
    Undelivered,
    Write,
)

Listener = Callable[[list[TopicPartition]], object]
Listeners = Mapping[Change, Listener | None]

# Looking costs more than a record does, so a user who polls for each does not pay for it each time.
_LOOK_AT_MOST_EVERY_S = 0.01
_POLL_S = 0.05
_REVOKED_WITHIN_S = 5.0


class Steering:
    """One member between its consumer, lagwise's topics and its user's listeners.

    Attributes:
        state: Where the member stands.
        listeners: Of the user.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        topics: Sequence[str],
        reading: Reading,
        side: FollowTopics,
        listeners: Listeners,
    ) -> None:
        self.state = FollowerState(settings=settings)
        self.listeners: Listeners = listeners
        self._topics, self._reading, self._side = list(topics), reading, side
        self._todo: deque[Action] = deque()
        self._looked_s = 0.0
        self._outages = 0
        self._is_committing = self._is_looking = False

    def subscribe(self) -> None:
        """Join the group, as far as the user's polls let it."""
        self.subscribe_to(self._topics, {})

    def subscribe_to(self, topics: Sequence[str], listeners: Listeners) -> None:
        """Read other topics from now on, and call these listeners instead of the former ones."""
        # First, since topics that the client refuses must change nothing.
        self._reading.consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        self._topics, self.listeners = list(topics), {**self.listeners, **listeners}
        # librdkafka takes a name that begins so for a pattern.
        known = None if any(name.startswith("^") for name in topics) else frozenset(topics)
        self.state = replace(self.state, settings=replace(self.state.settings, topics=known))

    def step(self) -> None:
        """Carry out what is left, look at the topics now and then, and do what comes of it."""
        self.drain()
        now_s = clock_s()
        if now_s - self._looked_s < _LOOK_AT_MOST_EVERY_S:
            return
        self._looked_s = now_s
        self._reading.start_waiting()
        self._side.look()
        for news in (self._heard, self._undelivered, self._outage, self._plan, Tick):
            # An event comes in when what came of the last one is carried out, commits answered.
            event = None if self.is_waiting else news()
            if event is not None:
                self._advance(event)
                self.drain()
        if not self.is_waiting:
            self._reading.delivered.stay_calm(now_s + _LOOK_AT_MOST_EVERY_S)

    def drain(self) -> None:
        """Carry out the pending actions, up to one that must wait for an answer."""
        while self.is_waiting:
            if self._is_looking:
                found = self._reading.looks.answer()
                if found is None:
                    return
                self._is_looking = False
                self._advance(Looked(found=found))
                continue
            if self._is_committing:
                answer = self._reading.commits.handover_answer()
                if answer is None:
                    return
                self._is_committing = False
                self._advance(Committed(offsets=answer[0], accepted=answer[1]))
            elif self._has_to_wait(self._todo[0]):
                return
            else:
                self._carry_out_next()

    @property
    def is_waiting(self) -> bool:
        """Return whether a hand-over waits for the answer to a commit or a look."""
        return self._is_committing or self._is_looking or bool(self._todo)

    def leave(self) -> None:
        """Give up everything, as if Kafka had revoked it."""
        self._carry_out(Revoked())

    # Events in.

    def _heard(self) -> Event | None:
        acks = self._side.take_acks()
        return AcksSeen(acks=acks) if acks else None

    def _undelivered(self) -> Event | None:
        ack = self._side.take_undelivered()
        return Undelivered(ack=ack) if ack else None

    def _outage(self) -> Event | None:
        if self._outages == self._side.outages:
            return None
        self._outages = self._side.outages
        return TopicsAway()

    def _plan(self) -> Event | None:
        plan = self._side.plan()
        return None if plan is self.state.offered else PlanSeen(plan=plan)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._reading.commits.is_leaving:
            # A client that closes may still be given partitions, of which it reads none, and tells no generation.
            return
        assigned = Assigned(
            member=consumer.memberid() or "",
            generation=generation_of(consumer.consumer_group_metadata()),
            places=frozenset((partition.topic, partition.partition) for partition in partitions),
        )
        self._in_callback(assigned)

    def _on_revoke(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        # What Kafka lists is the base; what is held may be more, or less.
        self._in_callback(Revoked())

    def _on_lost(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._in_callback(Lost())

    def _in_callback(self, event: Event) -> None:
        # Up to Python 3.11 an error of C code is no object until somebody catches it, as `with` does, and the client
        # raises a SystemError about its text in place of it.
        with self._reading.commits.in_callback():
            self._carry_out(event)

    def _carry_out(self, event: Event) -> None:
        """Do what comes of it up to the next request, which waits until the callback has returned."""
        self._refuse_waiting_commit()
        self._is_looking = False
        # Nor may one that an earlier callback has left stand before what comes of this one.
        self._todo = deque(action for action in self._todo if not isinstance(action, Look | Rejoin))
        self._advance(event)
        while self._todo and not isinstance(self._todo[0], Commit | Look | Rejoin):
            self._carry_out_next()

    def _refuse_waiting_commit(self) -> None:
        """One call of the client may run several callbacks: a commit that an earlier one left is of a generation past.

        Sent after this callback it would wait for the next generation, be accepted there, and prove nothing. An answer
        that is still to come proves nothing either.
        """
        if self._is_committing:
            self._is_committing = False
            self._reading.commits.give_up_handover()
            self._advance(Committed(accepted=False, offsets={}))
            return
        for action in self._todo:
            if isinstance(action, Commit):
                self._todo.remove(action)
                self._advance(Committed(accepted=False, offsets={}))
                return

    def _advance(self, event: Event) -> None:
        now = Instant(monotonic_s=clock_s(), wall_ms=now_ms())
        self.state, actions = advance(self.state, event, now)
        self._todo.extend(actions)

    # Actions out.

    def _has_to_wait(self, action: Action) -> bool:
        return isinstance(action, Commit) and self._reading.commits.must_wait(action.offsets)

    def _carry_out_next(self) -> None:
        action = self._todo.popleft()
        match action:
            case Assign():
                self._reading.assign(action.places, action.offsets)
            case Unassign():
                self._reading.unassign()
            case Commit():
                metadata = self._reading.looks.metadata
                self._reading.commits.begin_handover(action.offsets, action.marks, metadata)
                self._is_committing = True
            case Look():
                self._reading.looks.begin(action.places)
                self._is_looking = True
            case Write():
                self._side.write(action.ack)
            case Tell():
                self._tell(action)
            case Rejoin():
                self._rejoin()

    def _tell(self, action: Tell) -> None:
        listener = self.listeners[action.change]
        if listener is not None and action.places:
            listener([TopicPartition(*key) for key in sorted(action.places)])

    def _rejoin(self) -> None:
        # A record that comes below is thrown away, so it must not count as delivered.
        self._reading.delivered.take_back()
        self._reading.consumer.unsubscribe()
        deadline = clock_s() + _REVOKED_WITHIN_S
        try:
            while self.state.phase is Phase.REJOIN and clock_s() < deadline:
                self._reading.consumer.poll(_POLL_S)
            self._carry_out(Revoked())
        finally:
            # Also when a listener raises: nobody else would subscribe again.
            self.subscribe()
