"""Reads lagwise's topics in a thread of its own, and reports when they cannot be read.

A member must neither wait for these topics nor fail with them: the reader puts everything into `Heard`, which the
member polls at any time.

    connecting ── both topics read to their end ──► up ── an error, or no answer ──► away ──► connecting

The reader starts with acknowledgements from a little before the follower was created, or before the topics were last
known to exist: older ones cannot name this member, or have been read already. Reading one twice changes nothing.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from assignor.clients.clock import clock_s, now_ms
from assignor.clients.confluent.config import Config, reader_config, with_credentials
from assignor.clients.confluent.heard import Heard
from assignor.errors import AssignorError

log = logging.getLogger(__name__)

_ANSWER_WITHIN_S = 5.0
_CURRENT_WITHIN_S = 15.0
_ASK_EVERY_S = 5.0
_RETRY_AFTER_S, _RETRY_AT_MOST_AFTER_S = 1.0, 8.0
_WAIT_S = 0.5
_AT_ONCE = 500
# Clocks differ. A larger slack only makes the reader read some acknowledgements twice.
_SLACK_MS = 60_000
# librdkafka marks codes of its own with an underscore.
_UNKNOWN = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_END_SEEN, _CANNOT_BE_UNPACKED = KafkaError._PARTITION_EOF, KafkaError._BAD_COMPRESSION
_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, *_UNKNOWN})
_FORBIDDEN = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED})


class TopicsAwayError(AssignorError):
    """A topic cannot be read; the message gives the topic, the cause and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Topics to read, and the group whose records count."""

    control: str
    acks: str
    cluster: str | None
    group: str


class TopicsReader:
    """Reads until it is closed.

    Attributes:
        end: Set it to end the thread.
    """

    def __init__(self, config: Config, names: Names, heard: Heard) -> None:
        self.end = threading.Event()
        self._config, self._names, self._heard = reader_config(config), names, heard
        self._since_ms = now_ms() - _SLACK_MS
        self._positions: dict[tuple[str, int], int] = {}
        self._last_said = ""
        self._credentials: tuple[str, str] | None = None

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from now on. The reader's thread soon passes them to its consumer."""
        self._config = with_credentials(self._config, username, password)
        self._credentials = (username, password)

    def start(self) -> threading.Thread:
        """Start reading in a daemon thread."""
        thread = threading.Thread(target=self._run, name="lagwise-topics", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        retry_s = _RETRY_AFTER_S
        while not self.end.is_set():
            try:
                with self._connected() as reader:
                    retry_s = _RETRY_AFTER_S
                    self._read_on(reader)
            except Exception as error:  # noqa: BLE001  # without this thread, following would end for good
                self._say_away(_in_words(error))
                self.end.wait(retry_s)
                retry_s = min(2 * retry_s, _RETRY_AT_MOST_AFTER_S)

    @contextmanager
    def _connected(self) -> Iterator[Consumer]:
        """A consumer that has read both topics to their end."""
        with closing(Consumer(self._config)) as reader:
            places = self._places(reader)
            ends = self._ends(reader, places)
            of_acks = self._starts_of_acks(reader, ends)
            self._positions = dict.fromkeys(places, 0) | of_acks
            # Not from 0: retention may have deleted the first plans.
            starts = dict.fromkeys(places, OFFSET_BEGINNING) | of_acks
            reader.assign([TopicPartition(*place, start) for place, start in sorted(starts.items())])
            self._read_to(reader, ends)
            self._heard.set_up(is_up=True)
            if self._last_said:
                log.info("lagwise's topics can be read again: group %s follows plans", self._names.group)
            self._last_said = ""
            try:
                yield reader
            finally:
                self._heard.set_up(is_up=False)

    def _places(self, reader: Consumer) -> list[tuple[str, int]]:
        """All partitions of the control topic, and the one of the acks topic, which holds all records of a group."""
        places = self._partitions(reader, self._names.control)
        return places + self._partitions(reader, self._names.acks)[:1]

    def _partitions(self, reader: Consumer, topic: str) -> list[tuple[str, int]]:
        found = reader.list_topics(topic, timeout=_ANSWER_WITHIN_S)
        _check(topic, found.topics[topic].error)
        self._heard.name_cluster(self._names.cluster or str(found.cluster_id), self._names.group)
        return [(topic, number) for number in sorted(found.topics[topic].partitions)]

    def _starts_of_acks(
        self, reader: Consumer, ends: dict[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        place = (self._names.acks, 0)
        (found,) = _answers(reader, [TopicPartition(*place, self._since_ms)])
        return {place: found.offset if found.offset >= 0 else ends[place]}

    def _read_to(self, reader: Consumer, ends: dict[tuple[str, int], int]) -> None:
        deadline = clock_s() + _CURRENT_WITHIN_S
        left, starts = set(ends), dict(self._positions)
        while left and not self.end.is_set():
            left -= self._take(reader)
            # Where nothing was read, only a fetch that saw the end proves that the partition can be read.
            read = {place for place in left if self._positions[place] > starts[place]}
            left -= {place for place in read if self._positions[place] >= ends[place]}
            if left and clock_s() > deadline:
                raise TopicsAwayError(
                    _away(min(left)[0], f"not read to its end within {_CURRENT_WITHIN_S:.0f} s")
                )

    def _read_on(self, reader: Consumer) -> None:
        asked_s = clock_s()
        while not self.end.is_set():
            self._take(reader)
            if clock_s() - asked_s >= _ASK_EVERY_S:
                self._ask(reader)
                asked_s = clock_s()

    def _ask(self, reader: Consumer) -> None:
        """Return if both topics exist and are the ones being read, all of the control topic by now."""
        ends = self._ends(reader, list(self._positions))
        for place, position in self._positions.items():
            if position > ends[place]:
                raise TopicsAwayError(_away(place[0], "recreated or truncated"))
        # After those being read: for a moment no broker may know the end of a new one, which is no outage.
        new = [
            place for place in self._partitions(reader, self._names.control) if place not in self._positions
        ]
        if new:
            self._positions |= dict.fromkeys(new, 0)
            reader.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING) for place in new])
        self._since_ms = now_ms() - _SLACK_MS

    def _ends(self, reader: Consumer, places: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        answers = _answers(reader, [TopicPartition(*place, OFFSET_END) for place in places])
        return {(found.topic, found.partition): found.offset for found in answers}

    def _take(self, reader: Consumer) -> set[tuple[str, int]]:
        """Take in the messages that have arrived; return the partitions whose end was reached."""
        credentials, self._credentials = self._credentials, None
        if credentials is not None:
            reader.set_sasl_credentials(*credentials)
        first = reader.poll(_WAIT_S)
        if first is None:
            return set()
        ended, passed = set(), set()
        for message in [first, *reader.consume(_AT_ONCE, 0)]:
            place = (str(message.topic()), int(message.partition() or 0))
            error = message.error()
            if place in passed:
                # It comes again, from where the reader goes on.
                continue
            if error is None:
                self._hear(place, message)
            elif error.code() == _END_SEEN:
                ended.add(place)
            elif message.topic() is None:
                # An error of a broker: ask what it means for the topics.
                self._ask(reader)
            elif error.code() == _CANNOT_BE_UNPACKED and place[0] == self._names.acks:
                self._pass_over(reader, place, int(message.offset() or 0))
                passed.add(place)
            else:
                _check(str(message.topic()), error)
        return ended

    def _pass_over(self, reader: Consumer, place: tuple[str, int], base: int) -> None:
        """Go on behind a batch that unpacks to more than the client takes: whoever may write an acknowledgement can.

        Nothing says where the batch that begins at `base` ends, so steps double while it is still in front.
        """
        position = self._positions[place]
        behind = max(position, base) + max(1, position - base)
        _, end = reader.get_watermark_offsets(TopicPartition(*place), cached=True)
        # Until a fetch was answered, the client knows no end.
        self._positions[place] = min(behind, end) if end >= 0 else behind
        reader.seek(TopicPartition(*place, self._positions[place]))

    def _hear(self, place: tuple[str, int], message: Message) -> None:
        self._positions[place] = int(message.offset() or 0) + 1
        if place[0] == self._names.acks:
            self._heard.feed_ack(message.key(), message.value())
        else:
            # Consumed messages have a list; the type also allows the dict that a producer may pass.
            headers = cast("list[tuple[str, str | bytes | None]]", message.headers() or [])
            self._heard.feed_plan(message.key(), message.value(), headers)

    def _say_away(self, problem: str) -> None:
        if problem == self._last_said or self.end.is_set():
            return
        self._last_said = problem
        log.warning(
            "group %s follows no plan for now and keeps Kafka's assignment: %s; it resumes following on its own",
            self._names.group,
            problem,
        )


def _answers(reader: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """Offsets for these times; raises if one has none."""
    found = reader.offsets_for_times(asked, timeout=_ANSWER_WITHIN_S)
    for answer in found:
        _check(answer.topic, answer.error)
    return found


def _check(topic: str, error: KafkaError | None) -> None:
    if error is None:
        return
    if error.code() in _GONE:
        remedy = "does not exist; start the lagwise stream, which creates it, or correct its name"
        raise TopicsAwayError(f"topic {topic} {remedy}")
    if error.code() in _FORBIDDEN:
        remedy = "may not be read by this user; allow READ on the control and acks topics, and WRITE on the acks topic"
        raise TopicsAwayError(f"topic {topic} {remedy}")
    raise TopicsAwayError(_away(topic, error.str()))


def _away(topic: str, problem: str) -> str:
    return f"topic {topic} cannot be read ({problem}); check its brokers"


def _in_words(error: Exception) -> str:
    if isinstance(error, TopicsAwayError):
        return str(error)
    if not isinstance(error, KafkaException):
        return f"unexpected error {error!r}; report it"
    cause = error.args[0]
    text = cause.str() if isinstance(cause, KafkaError) else str(cause)
    return f"the brokers of lagwise's topics do not answer ({text}); check them, and this member's connection to them"
