"""The next offset of each partition to deliver to the user.

librdkafka keeps that count at no cost, but loses it with each assign() and seek(), some time after the call. This class
counts from such a call on, until both counts agree; while librdkafka counts, a record costs the user one look at the
clock.
"""

from collections.abc import Iterable

from confluent_kafka import Consumer, Message, TopicPartition

from assignor.clients.follower.state import PartitionKey


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
        if self.calm_until_s or all(self.positions[key] == at for key, at in self._counted().items()):
            self.calm_until_s = until_s

    def taken(self, messages: list[Message]) -> list[Message]:
        """The messages for the user: errors, and records of the partitions that are read. They count as delivered."""
        if not self.calm_until_s:
            mine = [m for m in messages if m.error() is not None or key_of(m) in self.positions]
            self._count(mine)
            return mine
        # No record of a partition that was given up arrives any more: pause() drops its fetched records. Nor does
        # librdkafka 2.16 count an error in a batch as the record of that offset, as 2.2 did (its issue 4844).
        return messages

    def _count(self, messages: Iterable[Message]) -> None:
        for one in messages:
            if one.error() is None:
                self.positions[key_of(one)] = int(one.offset() or 0) + 1

    def _counted(self) -> dict[PartitionKey, int]:
        if not self.positions:
            return {}
        found = self._consumer.position([TopicPartition(*key) for key in self.positions])
        return {
            (one.topic, one.partition): one.offset for one in found if one.error is None and one.offset >= 0
        }


def key_of(message: Message) -> PartitionKey:
    """Topic and partition."""
    return str(message.topic()), int(message.partition() or 0)
