"""Requests for the committed offsets of partitions in a hand-over, repeated until the coordinator answers."""

import logging
from collections.abc import Set as AbstractSet

from confluent_kafka import Consumer

from assignor.clients.clock import clock_s
from assignor.clients.confluent.offsets import committed_offsets
from assignor.clients.follower.state import Found, PartitionKey
from assignor.protocol.marks import split

log = logging.getLogger(__name__)

# The user's poll waits for it.
_ANSWER_WITHIN_S = 1.0
_AGAIN_AFTER_S, _AGAIN_AT_MOST_AFTER_S = 1.0, 8.0
_GIVE_UP_AFTER_S = 120.0


class Looks:
    """One look at a time.

    Attributes:
        metadata: The user's, of what was looked at last.
    """

    def __init__(self, consumer: Consumer) -> None:
        self.metadata: dict[PartitionKey, str] = {}
        self._consumer = consumer
        self._places: AbstractSet[PartitionKey] = frozenset()
        self._since_s = self._again_s = 0.0
        self._again_after_s = _AGAIN_AFTER_S

    def begin(self, places: AbstractSet[PartitionKey]) -> None:
        """Look at these; a look before is given up."""
        self._places, self._again_after_s = places, _AGAIN_AFTER_S
        self._since_s = self._again_s = clock_s()

    def answer(self) -> dict[PartitionKey, Found] | None:
        """Return the coordinator's answer, within a second; None until it answers, for two minutes at most."""
        now_s = clock_s()
        if now_s < self._again_s:
            return None
        found, problem = committed_offsets(self._consumer, self._places, timeout_s=_ANSWER_WITHIN_S)
        if problem and now_s - self._since_s < _GIVE_UP_AFTER_S:
            if self._again_after_s == _AGAIN_AFTER_S:
                log.warning(
                    "Kafka does not return the committed offsets of %d partitions that are being handed over (%s); "
                    "their hand-over waits, and the request is retried",
                    len(self._places),
                    problem,
                )
            self._again_s = clock_s() + self._again_after_s
            self._again_after_s = min(2 * self._again_after_s, _AGAIN_AT_MOST_AFTER_S)
            return None
        parts = {key: split(stored.metadata) for key, stored in found.items()}
        self.metadata = {key: metadata for key, (metadata, _) in parts.items()}
        return {key: Found(offset=found[key].offset, mark=mark) for key, (_, mark) in parts.items()}
