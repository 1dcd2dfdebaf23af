"""The partitions of a member: start offsets, the user's progress, and pauses.

librdkafka forgets this with each assign(), and every change by a plan calls assign(), so it is kept here.
`delivered` holds the position of the user in each partition.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from assignor.clients.clock import clock_s
from assignor.clients.confluent.commits import Commits, as_partitions, offsets_of
from assignor.clients.confluent.delivered import Delivered
from assignor.clients.confluent.errors import NotOwnedError
from assignor.clients.confluent.looks import Looks
from assignor.clients.confluent.offsets import Stored, bound_offsets, start_offsets
from assignor.clients.follower.state import PartitionKey
from assignor.protocol.marks import split

log = logging.getLogger(__name__)

_FAILED = KafkaError._FAIL
_SEEK_WITHIN_S = 10.0
# The user's poll waits for it.
_ANSWER_WITHIN_S = 1.0
_ASK_AGAIN_AFTER_S, _ASK_AGAIN_AT_MOST_AFTER_S = 1.0, 8.0


class Reading:
    """The partitions that a member reads, or will read once their start offsets are known.

    Attributes:
        consumer: The user's.
        commits: Of what is read.
        looks: At what changes hands.
        stored: What its user has stored of what is read, to be committed by the next bare commit.
        delivered: How far its user has been given each partition that is read.
    """

    def __init__(self, consumer: Consumer, *, starts_earliest: bool) -> None:
        self.consumer = consumer
        self.commits = Commits(consumer)
        self.looks = Looks(consumer)
        self.delivered = Delivered(consumer)
        self.stored: dict[PartitionKey, Stored] = {}
        self._starts_earliest = starts_earliest
        self._starting: frozenset[PartitionKey] = frozenset()
        self._paused: set[PartitionKey] = set()
        # What was given up, too: librdkafka goes on pausing it when it has come back.
        self._paused_in_client: set[PartitionKey] = set()
        self._ask_again_after_s, self._ask_again_s = _ASK_AGAIN_AFTER_S, 0.0
        self._asks_in_parts = False

    @property
    def places(self) -> frozenset[PartitionKey]:
        """Return the partitions that the member reads or will read."""
        return self._starting | self.delivered.positions.keys()

    @property
    def positions(self) -> dict[PartitionKey, int]:
        """Return the next offset to deliver, by partition."""
        self.delivered.refresh()
        return dict(self.delivered.positions)

    def assign(self, places: AbstractSet[PartitionKey], offsets: Mapping[PartitionKey, int]) -> None:
        """Read exactly these: those read already from where they are, others from that offset or from their commit.

        If the coordinator does not return the commit, the partition waits, and the others are read.
        """
        if places < self.places:
            self._give_up(self.places - places)
            return
        self.delivered.take_back()
        positions = self.delivered.positions
        new = places - positions.keys()
        known = {key: offset for key, offset in offsets.items() if key in new}
        metadata = self.looks.metadata
        self.commits.start({key: Stored(offset, metadata.get(key, "")) for key, offset in known.items()})
        self.delivered.positions = {key: at for key, at in positions.items() if key in places} | known
        self._starting = frozenset(new - known.keys())
        self._paused &= places - new
        self._forget_stored(new | (positions.keys() - places))
        self._ask_again_after_s = _ASK_AGAIN_AFTER_S
        # Nothing is assigned twice: what has been fetched is lost each time.
        if not self._ask_where_to_start():
            self._reassign()

    def start_waiting(self) -> None:
        """Retry the request for missing start offsets, if it is due."""
        if self._starting and clock_s() >= self._ask_again_s:
            self._ask_where_to_start()

    def unassign(self) -> None:
        """Read nothing."""
        if not self.commits.is_stuck:
            self.consumer.unassign()
        self.delivered.clear()
        self._starting, self._paused, self.stored = frozenset(), set(), {}
        self.commits.forget()

    def commit(
        self, wanted: Collection[TopicPartition], *, asynchronous: bool
    ) -> list[TopicPartition] | None:
        """Commit those of them that are read.

        Raises:
            NotOwnedError: The rest, after the others were committed.
            KafkaException: The commit failed.
        """
        mine, foreign = self._split(wanted)
        answer: list[TopicPartition] | None = None if asynchronous else []
        if mine:
            answer = self.commits.commit(mine, asynchronous=asynchronous)
        if foreign:
            raise NotOwnedError(foreign)
        return answer

    def store(self, offsets: Iterable[TopicPartition]) -> None:
        """Keep those of what is read for the next bare commit.

        Raises:
            NotOwnedError: The rest, after the others were kept.
        """
        mine, foreign = self._split(offsets)
        self.stored.update(
            {(one.topic, one.partition): Stored(one.offset, one.metadata or "") for one in mine}
        )
        if foreign:
            raise NotOwnedError(foreign)

    def uncommitted(self) -> list[TopicPartition]:
        """The stored offsets beyond the last commit, as librdkafka chooses them."""
        finished = self.commits.finished
        return [
            TopicPartition(*key, *one)
            for key, one in sorted(self.stored.items())
            if key not in finished or one.offset > finished[key].offset
        ]

    # What users of a consumer do with its partitions.

    def seek(self, partition: TopicPartition) -> None:
        """Continue at that offset, which may be a logical one.

        Raises:
            NotOwnedError: It is not read.
            KafkaException: Nobody says where the logical offset is.
        """
        key = (partition.topic, partition.partition)
        if key not in self.places:
            raise NotOwnedError([key])
        offset = partition.offset if partition.offset >= 0 else self._resolved(key, partition.offset)
        is_waiting = key in self._starting
        self.delivered.take_back()
        self.delivered.positions[key] = offset
        self._starting -= {key}
        try:
            if not is_waiting:
                self.consumer.seek(TopicPartition(*key, offset))
                return
        except KafkaException as error:
            # librdkafka refuses as long as it has not begun to fetch.
            log.debug("assigned again in order to seek", extra={"problem": str(error)})
        self._reassign()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch nothing of those that are read.

        Raises:
            NotOwnedError: The rest, after the others were paused.
        """
        mine, foreign = self._split(partitions)
        self._paused |= offsets_of(mine).keys()
        self._pause(offsets_of(mine).keys())
        if foreign:
            raise NotOwnedError(foreign)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch those that are read again.

        Raises:
            NotOwnedError: The rest, after the others were resumed.
        """
        mine, foreign = self._split(partitions)
        self._paused -= offsets_of(mine).keys()
        self._resume(offsets_of(mine).keys())
        if foreign:
            raise NotOwnedError(foreign)

    def position(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Next offset of each; `OFFSET_INVALID` for one that is not read."""
        keys, positions = [(partition.topic, partition.partition) for partition in partitions], self.positions
        return [TopicPartition(*key, positions.get(key, OFFSET_INVALID)) for key in keys]

    def _give_up(self, places: AbstractSet[PartitionKey]) -> None:
        """Read on without these.

        They stay assigned in the client until something comes: after an assign() librdkafka fetches nothing, not even
        what stays, before each commit is answered that is under way, and a coordinator may be silent for long.
        """
        self._pause(places)
        self.delivered.take_back()
        positions = self.delivered.positions
        self.delivered.positions = {key: at for key, at in positions.items() if key not in places}
        self._starting -= places
        self._paused -= places
        self._forget_stored(places)

    def _forget_stored(self, places: AbstractSet[PartitionKey]) -> None:
        self.stored = {key: one for key, one in self.stored.items() if key not in places}

    def _ask_where_to_start(self) -> bool:
        """Whether something more can be read now."""
        if not self._starting:
            return False
        found, problem = start_offsets(
            self.consumer,
            self._starting,
            earliest=self._starts_earliest,
            timeout_s=_ANSWER_WITHIN_S,
            in_parts=self._asks_in_parts,
        )
        # In turns: one silent leader needs the one, leaders that are all slow the other.
        self._asks_in_parts = bool(problem) and not self._asks_in_parts
        if problem:
            if self._ask_again_after_s == _ASK_AGAIN_AFTER_S:
                log.warning(
                    "Kafka does not return the offsets at which to start reading %d partitions (%s); they wait, and "
                    "the request is retried",
                    len(self._starting - found.keys()),
                    problem,
                )
            self._ask_again_s = clock_s() + self._ask_again_after_s
            self._ask_again_after_s = min(2 * self._ask_again_after_s, _ASK_AGAIN_AT_MOST_AFTER_S)
        self._starting -= found.keys()
        # The mark of a hand-over is of that one alone.
        self.commits.start({key: Stored(one.offset, split(one.metadata)[0]) for key, one in found.items()})
        self.delivered.take_back()
        self.delivered.positions.update({key: one.offset for key, one in found.items()})
        if found:
            self._reassign()
        return bool(found)

    def _reassign(self) -> None:
        # An assign() without offsets would rewind what stays to its last commit.
        self.consumer.assign(as_partitions(self.delivered.positions))
        self._resume(self._paused_in_client - self._paused)
        self._pause(self._paused)

    def _resume(self, places: AbstractSet[PartitionKey]) -> None:
        fetched = places & self.delivered.positions.keys()
        self._paused_in_client -= fetched
        if fetched:
            self.consumer.resume(as_partitions(dict.fromkeys(fetched, 0)))

    def _pause(self, places: AbstractSet[PartitionKey]) -> None:
        fetched = places & self.delivered.positions.keys()
        self._paused_in_client |= fetched
        if fetched:
            self.consumer.pause(as_partitions(dict.fromkeys(fetched, 0)))

    def _resolved(self, key: PartitionKey, logical: int) -> int:
        if logical == OFFSET_STORED:
            stored, problem = start_offsets(
                self.consumer, {key}, earliest=self._starts_earliest, timeout_s=_SEEK_WITHIN_S
            )
            found = {place: one.offset for place, one in stored.items()}
        elif logical in (OFFSET_BEGINNING, OFFSET_END):
            is_first = logical == OFFSET_BEGINNING
            found, problem = bound_offsets(self.consumer, {key}, earliest=is_first, timeout_s=_SEEK_WITHIN_S)
        else:
            found, problem = {}, f"{logical} is not an offset"
        if key not in found:
            raise KafkaException(KafkaError(_FAILED, f"cannot seek in {key[0]}-{key[1]}: {problem}"))
        return found[key]

    def _split(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[list[TopicPartition], frozenset[PartitionKey]]:
        """Those that are read, and the rest."""
        asked = {(partition.topic, partition.partition): partition for partition in partitions}
        places = self.places
        return [asked[key] for key in sorted(asked) if key in places], frozenset(asked.keys() - places)
