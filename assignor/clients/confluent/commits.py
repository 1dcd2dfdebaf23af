"""The user's commits by partition, as Kafka has them, and the commit that hands a partition over.

All commits are asynchronous unless the user wants otherwise: a silent coordinator must not keep the user from the
partitions that the member still reads.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from assignor.clients.bounded import within
from assignor.clients.clock import clock_s
from assignor.clients.confluent.offsets import Stored
from assignor.clients.follower.state import PartitionKey
from assignor.protocol.marks import HandOverMark, split, with_mark

log = logging.getLogger(__name__)

Offsets = dict[PartitionKey, int]

_AGAIN_AFTER_S = 0.5
# Longer than any request of librdkafka by default.
_ANSWERED_WITHIN_S = 120.0
_TIMED_OUT = KafkaError._TIMED_OUT
# The coordinator was not reached, so it has not refused.
_UNREACHED = frozenset(
    {
        KafkaError._TRANSPORT,
        _TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)


class Commits:
    """The commits of one membership in the group.

    Attributes:
        finished: Where each partition goes on if it is handed over now: last commit of the user, or the start.
        is_leaving: Whether the member closes, and must not wait for ever.
        is_in_callback: Whether the client calls a listener: what another thread asked of it would wait for this one.
        is_stuck: Whether a call of the client does not end; all others would wait for it.
    """

    def __init__(self, consumer: Consumer) -> None:
        self.finished: dict[PartitionKey, Stored] = {}
        self.is_leaving = self.is_in_callback = self.is_stuck = False
        self._consumer = consumer
        self._sent: list[tuple[int, dict[PartitionKey, Stored]]] = []
        # Of stays that are over; their user still waits for the answers.
        self._sent_before: list[Offsets] = []
        self._number = 0
        self._finished_by: dict[PartitionKey, int] = {}
        self._handover: Offsets | None = None
        self._handover_metadata: dict[PartitionKey, str] = {}
        self._marks: Mapping[PartitionKey, HandOverMark] = {}
        self._accepted: bool | None = None
        self._again_s: float | None = None
        self._since_s: float | None = None

    @contextmanager
    def in_callback(self) -> Iterator[None]:
        """Note that the client has called back, and waits until that returns."""
        self.is_in_callback = True
        try:
            yield
        finally:
            self.is_in_callback = False

    def forget(self) -> None:
        """End the membership: later answers do not concern a new one, but still go to the user."""
        self._sent_before += [_offsets(sent) for _, sent in self._sent]
        self.finished, self._sent, self._finished_by = {}, [], {}
        self.give_up_handover()

    def start(self, stored: Mapping[PartitionKey, Stored]) -> None:
        """These are read from there on."""
        self._number += 1
        self._finish(stored, self._number)

    def commit(self, partitions: list[TopicPartition], *, asynchronous: bool) -> list[TopicPartition] | None:
        """Commit for the user.

        Raises:
            KafkaException: The commit failed; or nobody knows, as a member that leaves has no answer in two minutes.
        """
        self._number += 1
        if asynchronous:
            self._consumer.commit(offsets=partitions, asynchronous=True)
            self._sent.append((self._number, _stored_of(partitions)))
            return None
        answer = self._answer_to(partitions)
        self._finish(_taken_of(_stored_of(partitions), answer or ()), self._number)
        return answer

    def _answer_to(self, partitions: list[TopicPartition]) -> list[TopicPartition] | None:
        """Wait for a synchronous commit. librdkafka may wait for ever if its coordinator goes away (its issue 3740)."""
        commit = partial(self._consumer.commit, offsets=partitions, asynchronous=False)
        if self.is_in_callback or not self.is_leaving:
            return commit()
        try:
            return within(0.0 if self.is_stuck else _ANSWERED_WITHIN_S, commit)
        except TimeoutError as error:
            self.is_stuck = True
            raise KafkaException(KafkaError(_TIMED_OUT, f"Commit failed: {error}")) from error

    def answered(self, error: KafkaError | None, partitions: Iterable[TopicPartition]) -> bool:
        """Take the answer to an asynchronous commit, and return whether that was the user's."""
        answer = list(partitions)
        offsets = offsets_of(answer)
        if offsets in self._sent_before:
            self._sent_before.remove(offsets)
            return True
        mine = next((one for one in self._sent if _offsets(one[1]) == offsets), None)
        if mine is not None:
            self._sent.remove(mine)
            if error is None:
                self._finish(_taken_of(mine[1], answer), mine[0])
            return True
        if offsets == self._handover:
            self._handover_answered(error, answer)
        return False

    def must_wait(self, places: Collection[PartitionKey]) -> bool:
        """Return whether a commit of the user is under way for one of them: a late one would set the group back."""
        asked = set(places)
        is_under_way = any(asked & sent.keys() for _, sent in self._sent)
        if not is_under_way:
            self._since_s = None
        return is_under_way and self._is_patient()

    def begin_handover(
        self,
        wanted: Mapping[PartitionKey, int | None],
        marks: Mapping[PartitionKey, HandOverMark],
        metadata: Mapping[PartitionKey, str],
    ) -> None:
        """Commit these offsets with their marks.

        Args:
            wanted: By partition; None stands for what the user has finished.
            marks: By partition.
            metadata: The user's, where an offset is given.
        """
        stored = {
            key: self.finished.get(key, Stored(-1))
            if offset is None
            else Stored(offset, metadata.get(key, ""))
            for key, offset in wanted.items()
        }
        offsets = _offsets(stored)
        self._handover, self._accepted, self._since_s = offsets, None, None
        self._handover_metadata = {key: one.metadata for key, one in stored.items()}
        self._marks = marks
        if min(offsets.values(), default=0) < 0:
            # Nobody knows where it would go on.
            self._accepted = False
        else:
            self._send_handover()

    def handover_answer(self) -> tuple[Offsets, bool] | None:
        """Return what was committed, and whether Kafka accepted it; None until there is an answer."""
        if self._handover is None:
            return None
        if self._accepted is None and not self._is_patient():
            self._accepted = False
        if self._accepted is None:
            if self._again_s is not None and clock_s() >= self._again_s:
                self._send_handover()
            return None
        answer = (self._handover, self._accepted)
        self.give_up_handover()
        return answer

    def give_up_handover(self) -> None:
        """Expect no answer any more."""
        self._handover, self._accepted, self._again_s, self._since_s = None, None, None, None

    def _handover_answered(self, error: KafkaError | None, answer: list[TopicPartition]) -> None:
        problems = _problems(error, answer)
        too_long = {key for key in _too_large(answer) if self._handover_metadata.get(key)}
        if not problems:
            self._accepted = True
        elif all(problem.code() in _UNREACHED for problem in problems):
            self._again_s = clock_s() + _AGAIN_AFTER_S
        elif too_long:
            log.warning(
                "the committed metadata of %d partitions leaves no room for the hand-over mark, so the mark is left "
                "out; commit shorter metadata, or raise offset.metadata.max.bytes on the brokers",
                len(too_long),
            )
            self._handover_metadata = {**self._handover_metadata, **dict.fromkeys(too_long, "")}
            self._send_handover()
        else:
            log.info("a hand-over commit was rejected: %s", problems[0].str())
            self._accepted = False

    def _send_handover(self) -> None:
        self._again_s = None
        offsets, marks = self._handover or {}, self._marks
        marked = [
            TopicPartition(*key, offsets[key], with_mark(self._handover_metadata.get(key, ""), marks[key]))
            for key in sorted(offsets)
        ]
        self._consumer.commit(offsets=marked, asynchronous=True)

    def _is_patient(self) -> bool:
        now_s = clock_s()
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s < _ANSWERED_WITHIN_S

    def _finish(self, stored: Mapping[PartitionKey, Stored], number: int) -> None:
        for key, one in stored.items():
            # The answer to an asynchronous commit comes after that to a synchronous one that was sent later.
            if number >= self._finished_by.get(key, 0):
                self.finished[key], self._finished_by[key] = one, number


def as_partitions(offsets: Mapping[PartitionKey, int]) -> list[TopicPartition]:
    """The offsets in the client's form, sorted."""
    return [TopicPartition(*key, offsets[key]) for key in sorted(offsets)]


def offsets_of(partitions: Iterable[TopicPartition]) -> Offsets:
    """By partition."""
    return {(partition.topic, partition.partition): partition.offset for partition in partitions}


def without_mark(committed: TopicPartition) -> TopicPartition:
    """Return the user's commit without the mark."""
    metadata, mark = split(committed.metadata or "")
    if mark is None:
        return committed
    epoch = {} if committed.leader_epoch is None else {"leader_epoch": committed.leader_epoch}
    return TopicPartition(committed.topic, committed.partition, committed.offset, metadata, **epoch)


def _too_large(answer: Iterable[TopicPartition]) -> Iterator[PartitionKey]:
    for done in answer:
        if done.error is not None and done.error.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
            yield done.topic, done.partition


def _problems(error: KafkaError | None, answer: Iterable[TopicPartition]) -> list[KafkaError]:
    return [problem for problem in (error, *(done.error for done in answer)) if problem is not None]


def _stored_of(partitions: Iterable[TopicPartition]) -> dict[PartitionKey, Stored]:
    return {(one.topic, one.partition): Stored(one.offset, one.metadata or "") for one in partitions}


def _offsets(stored: Mapping[PartitionKey, Stored]) -> Offsets:
    return {key: one.offset for key, one in stored.items()}


def _taken_of(
    sent: Mapping[PartitionKey, Stored], answer: Iterable[TopicPartition]
) -> dict[PartitionKey, Stored]:
    """What Kafka took of it."""
    taken = offsets_of(done for done in answer if done.error is None and done.offset >= 0)
    return {key: sent[key] for key, offset in taken.items() if key in sent and sent[key].offset == offset}
