"""Records from lagwise's topics, passed from the thread that reads them to the thread that polls."""

import logging
import threading
from collections import deque

from assignor.clients.control import ControlState, Headers
from assignor.errors import DecodeError
from assignor.protocol import acks
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord

log = logging.getLogger(__name__)


class Heard:
    """Acknowledgements of the group in their order, and its plan.

    Attributes:
        is_up: Whether both topics can be read.
        outages: How often they could not any more.
        damaged_acks: Number of acknowledgements of the group that could not be read.
    """

    def __init__(self) -> None:
        self.is_up = False
        self.outages = 0
        self.damaged_acks = 0
        self._lock = threading.Lock()
        self._acks: deque[AnyAck] = deque()
        self._control: ControlState | None = None
        self._key_head = b""

    def name_cluster(self, cluster: str, group: str) -> None:
        """Say whose records to take; the first call counts."""
        if self._control is None:
            self._key_head = acks.key_head(cluster, group)
            self._control = ControlState(cluster=cluster, group=group)

    def set_up(self, *, is_up: bool) -> None:
        """The topics can be read to their end, or not any more."""
        self.outages += self.is_up and not is_up
        self.is_up = is_up

    def feed_plan(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """A record of the control topic."""
        if self._control is not None:
            self._control.feed(key, value, headers)

    def feed_ack(self, key: bytes | None, value: bytes | None) -> None:
        """A record of the acks topic."""
        # Those of other groups, which are nearly all, are not decoded.
        if key is None or value is None or not self._key_head or not key.startswith(self._key_head):
            return
        try:
            ack = acks.decode(key, value)
        except DecodeError as error:
            self._note_damage(error)
            return
        with self._lock:
            self._acks.append(ack)

    def take_acks(self) -> tuple[AnyAck, ...]:
        """Return the acknowledgements since the last call."""
        if not self._acks:
            return ()
        with self._lock:
            taken = tuple(self._acks)
            self._acks.clear()
        return taken

    def plan(self, now_ms: int) -> ControlRecord | None:
        """The plan that is valid at that time; None for none, also while the topics cannot be read."""
        return self._control.plan(now_ms) if self.is_up and self._control is not None else None

    def _note_damage(self, error: DecodeError) -> None:
        self.damaged_acks += 1
        if self.damaged_acks == 1:
            log.warning(
                "an acknowledgement cannot be decoded; it and all others like it are ignored: %s", error
            )
