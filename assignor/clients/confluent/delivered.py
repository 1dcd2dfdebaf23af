"""The next offset of each partition to deliver to the user.

librdkafka keeps that count at no cost, but loses it with each assign() and seek(), some time after the call. This class
counts from such a call on, until both counts agree; while librdkafka counts, a record costs the user one look at the
clock.
"""

import math
from collections.abc import Iterable

from confluent_kafka import Consumer, Message, TopicPartition

from assignor.clients.follower.state import PartitionKey

# To ask librdkafka for positions takes as long as so many looks at messages, and each position as so many more.
_ASKING_IN_LOOKS, _POSITION_IN_LOOKS = 160, 20


class Delivered:
    """Next offset by partition.

    Attributes:
        positions: Next offset; of what librdkafka counts, as it was when it was last asked (`refresh`).
        calm_until_s: Before this time nothing has to be done but to hand out records; 0 while they are counted here.
    """

    def __init__(self, consumer: Consumer) -> None:
        self.positions: dict[PartitionKey, int] = {}
        self.calm_until_s = 0.0
        self._consumer = consumer
        # What librdkafka counts, in the order of `positions`, and where that was when it was last known to be right.
        self._asked: list[TopicPartition] = []
        self._index: dict[tuple[str | None, int | None], int] = {}
        self._before: list[int] = []
        self._pays_with_more_than = 0.0

    def refresh(self) -> None:
        """Take over the positions that librdkafka has counted."""
        if self.calm_until_s:
            self.positions.update(self._counted())

    def take_back(self) -> None:
        """Count here, from librdkafka's positions on; call it before anything by which librdkafka loses count."""
        self.refresh()
        self.calm_until_s = 0.0

    def clear(self) -> None:
        """Nothing is read."""
        self.positions, self.calm_until_s = {}, 0.0

    def stay_calm(self, until_s: float) -> None:
        """Let librdkafka count, unless its positions differ: they may still be those before an assign() or a seek()."""
        if not self.calm_until_s:
            self._asked = [TopicPartition(*key) for key in self.positions]
            self._index = {key: at for at, key in enumerate(self.positions)}
            self._before = self._offsets()
            if any(self.positions[key] != at for key, at in self._counted().items()):
                return
        self.calm_until_s = until_s
        self._pays_with_more_than = _ASKING_IN_LOOKS + _POSITION_IN_LOOKS * len(self._asked)

    def taken(self, messages: list[Message]) -> list[Message]:
        """The messages for the user: errors, and records of the partitions that are read. They count as delivered."""
        if not self.calm_until_s:
            mine = [m for m in messages if m.error() is not None or key_of(m) in self.positions]
            self._count(mine)
            return mine
        # No record of a partition that was given up arrives any more: pause() drops its fetched records.
        if len(messages) > self._pays_with_more_than and self._end_in_records(messages):
            return messages
        # 20 ns for each record. `any` over `map` takes a little longer.
        if next(filter(Message.error, messages), None) is not None:
            # In a batch librdkafka counts an error as if it were the record of that offset.
            self.take_back()
            self._count(messages)
        return messages

    def _end_in_records(self, messages: list[Message]) -> bool:
        """Whether librdkafka's positions are right after these messages; False also if that takes a look at each.

        A position is one more than the largest offset that librdkafka has handed out, be it of a record or of an error.
        So it is right if the record of the offset before it is here. The search for it takes one step for each
        partition that has moved, if its messages stand together and its offsets have no gaps.
        """
        before, now = self._before, self._offsets()
        end = len(messages)
        while before != now and end > 0:
            last = messages[end - 1]
            at = self._index.get((last.topic(), last.partition()))
            if at is None or last.offset() != now[at] - 1 or last.error() is not None:
                break
            progress = now[at] - before[at]
            if progress <= 0:
                break
            end -= progress
            before[at] = now[at]
        if before == now:
            return True
        # Partitions take turns, or offsets have gaps; the next messages will be alike.
        self._before, self._pays_with_more_than = now, math.inf
        return False

    def _count(self, messages: Iterable[Message]) -> None:
        for one in messages:
            key, offset = key_of(one), int(one.offset() or 0)
            if one.error() is None:
                self.positions[key] = offset + 1
            elif key in self.positions and offset >= 0:
                self.positions[key] = min(self.positions[key], offset)

    def _counted(self) -> dict[PartitionKey, int]:
        return {key: at for key, at in zip(self.positions, self._offsets(), strict=True) if at >= 0}

    def _offsets(self) -> list[int]:
        """Positions of librdkafka; a negative one where it has none."""
        return [one.offset for one in self._consumer.position(self._asked)]


def key_of(message: Message) -> PartitionKey:
    """Topic and partition."""
    return str(message.topic()), int(message.partition() or 0)
