"""What a follower refuses to do for its user."""

from collections.abc import Iterable

from assignor.clients.follower.state import PartitionKey
from assignor.errors import AssignorError


class NotOwnedError(AssignorError):
    """Asked for partitions that this member does not read, or no longer; for those alone nothing was done.

    Kafka would take their commit from any member of the group, over the head of the one who reads them.

    Attributes:
        places: Topic and partition of each; empty when the member is out of its group altogether.
    """

    def __init__(self, places: Iterable[PartitionKey] = ()) -> None:
        self.places = tuple(sorted(places))
        super().__init__(self.places)

    def __str__(self) -> str:
        if not self.places:
            return (
                "this member is in no generation of its group; it can commit after poll() has joined (again)"
            )
        return (
            f"not read by this member, so left alone: {', '.join(f'{t}-{p}' for t, p in self.places)}; "
            "what else was asked is done"
        )


class TransactionsUnsupportedError(AssignorError):
    """Offsets in a producer's transaction are not supported by a follower."""
