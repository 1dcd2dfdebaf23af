"""Errors for calls that a follower refuses."""

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from assignor.clients.follower.state import PartitionKey
from assignor.errors import AssignorError

_STATE = KafkaError._STATE


class NotOwnedError(AssignorError, KafkaException):
    """The call concerns partitions that this member does not, or no longer, read; only those are left out.

    Kafka would accept their commit from any member of the group, even against the member that reads them. Handlers of
    `confluent_kafka.KafkaException` catch it, too, and find a `KafkaError` in `args[0]`, with the code `_STATE`.

    Attributes:
        places: Topic and partition of each; empty when the member is out of its group altogether.
    """

    def __init__(self, places: Iterable[PartitionKey] = ()) -> None:
        self.places = tuple(sorted(places))
        super().__init__(KafkaError(_STATE, self._in_words()))

    def __str__(self) -> str:
        return self._in_words()

    def __reduce__(self) -> tuple[type["NotOwnedError"], tuple[tuple[PartitionKey, ...]]]:
        return NotOwnedError, (self.places,)

    def _in_words(self) -> str:
        if not self.places:
            return "this member is not in a generation of its group; it can commit once poll() has joined or rejoined"
        return (
            f"not read by this member, so left alone: {', '.join(f'{t}-{p}' for t, p in self.places)}; "
            "the rest was done"
        )


class TransactionsUnsupportedError(AssignorError):
    """Offsets in a producer's transaction are not supported by a follower."""
