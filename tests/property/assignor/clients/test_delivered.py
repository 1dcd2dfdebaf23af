"""What counts as delivered, whatever librdkafka hands out in a batch: records, gaps, errors, ends of transactions."""

from typing import NamedTuple
from unittest.mock import patch

from confluent_kafka import KafkaError, Message, TopicPartition
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assignor.clients.confluent import delivered as module
from assignor.clients.confluent.delivered import Delivered
from assignor.clients.follower.state import PartitionKey

TOPIC = "t"
KEYS = [(TOPIC, number) for number in range(3)]
FAILED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


class Piece(NamedTuple):
    """So many records of a partition with consecutive offsets, then a gap, or an error, or the end of a transaction."""

    partition: int
    records: int
    then: str


class Librdkafka:
    """Counts as `rd_kafka_q_serve_rkmessages` of librdkafka 2.16 does: an error like the record of its offset."""

    def __init__(self) -> None:
        self.counted: dict[PartitionKey, int] = {}

    def position(self, asked: list[TopicPartition]) -> list[TopicPartition]:
        return [
            TopicPartition(*key, self.counted.get(key, -1001))
            for key in ((one.topic, one.partition) for one in asked)
        ]

    def count(self, key: PartitionKey, offset: int) -> None:
        self.counted[key] = max(self.counted.get(key, -1001), offset + 1)


class World:
    """A user's client, and which offset of each partition he must be given next."""

    def __init__(self) -> None:
        self.client = Librdkafka()
        self.delivered = Delivered(self.client)  # type: ignore[arg-type]  # all that it asks of a consumer
        self.delivered.positions = dict.fromkeys(KEYS, 0)
        self.fetched = dict.fromkeys(KEYS, 0)
        self.least = dict.fromkeys(KEYS, 0)
        self.delivered.stay_calm(1.0)
        assert self.is_calm

    @property
    def is_calm(self) -> bool:
        return self.delivered.calm_until_s > 0

    def consume(self, batch: list[Piece]) -> None:
        messages = [message for piece in batch for message in self._messages(piece)]
        assert self.delivered.taken(messages) == messages

    def check(self) -> None:
        """Nothing that was given is forgotten, and nothing that was not given counts as given."""
        self.delivered.refresh()
        for key, position in self.delivered.positions.items():
            assert self.least[key] <= position <= self.fetched[key], key

    def _messages(self, piece: Piece) -> list[Message]:
        key = (TOPIC, piece.partition)
        first = self.fetched[key]
        messages = [Message(*key, offset=first + number) for number in range(piece.records)]
        if piece.records:
            self.least[key] = first + piece.records
            self.client.count(key, first + piece.records - 1)
        self.fetched[key] += piece.records
        if piece.then == "gap":
            self.fetched[key] += 1
        elif piece.then == "end of a transaction":
            self.client.count(key, self.fetched[key])
            self.fetched[key] += 1
        elif piece.then == "error":
            self.client.count(key, self.fetched[key])
            messages.append(Message(*key, offset=self.fetched[key], error=FAILED))
        return messages


pieces = st.builds(
    Piece,
    partition=st.integers(0, len(KEYS) - 1),
    records=st.integers(0, 3),
    then=st.sampled_from(["nothing", "nothing", "gap", "end of a transaction", "error"]),
)
batches = st.lists(st.tuples(st.lists(pieces, max_size=6), st.booleans(), st.booleans()), max_size=8)


@settings(max_examples=400)
@given(batches)
# An error of one partition in a gap of another one, and a partition whose gaps lead the search past the first message.
@example([([Piece(0, 1, "gap"), Piece(1, 0, "error"), Piece(0, 2, "nothing")], False, True)])
@example([([Piece(1, 0, "error"), Piece(0, 1, "gap"), Piece(0, 2, "nothing")], False, True)])
def test_all_that_was_handed_out_counts_and_nothing_else(
    batches: list[tuple[list[Piece], bool, bool]],
) -> None:
    # However small a batch is, librdkafka's positions are asked for first.
    with patch.multiple(module, _ASKING_IN_LOOKS=0, _POSITION_IN_LOOKS=0):
        world = World()
        for batch, looks_at_topics, asks in batches:
            world.consume(batch)
            if looks_at_topics:
                world.delivered.stay_calm(1.0)
            if asks:
                world.check()
        world.check()


def test_record_that_comes_again_after_a_log_was_cut_proves_nothing() -> None:
    with patch.multiple(module, _ASKING_IN_LOOKS=0, _POSITION_IN_LOOKS=0):
        world = World()
        world.consume([Piece(0, 3, "nothing")])
        world.fetched[KEYS[0]] = 2
        world.consume([Piece(1, 0, "error"), Piece(1, 2, "nothing"), Piece(0, 1, "nothing")])

        world.check()
