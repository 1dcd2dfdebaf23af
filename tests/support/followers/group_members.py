"""Members of one group, each in a thread of its own, and what each of them has seen, whatever their client."""

import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Any

from tests.support.followers.stays import Stay
from tests.support.waiting import wait_until

_STOPPED_WITHIN_S = 120
# A leader may join once more when it has seen the topics: three heartbeats without news are the end of it.
QUIET_S = 1.0

PartitionKey = tuple[str, int]
_NUMBERS = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a member sees of its group between two polls."""

    generation: int
    member_id: str
    owned: frozenset[PartitionKey]


class ThreadedMember(ABC):
    """A member that polls until it is stopped.

    Attributes:
        views: Every view it had, each once, in order.
        read: Every (topic, partition, offset) it was given.
        assignor: Name of the assignor its group last selected, where its client shows it.
        changed_at_s: Monotonic time of the latest view.
        stays: Which partitions it read from when to when, as its client told it.
    """

    def __init__(self) -> None:
        self.name = f"member {next(_NUMBERS)}"
        self.views: list[View] = []
        self.read: set[tuple[str, int, int]] = set()
        self.assignor: str | None = None
        self.changed_at_s = time.monotonic()
        self.stays: list[Stay[PartitionKey]] = []
        self._begun: dict[PartitionKey, float] = {}
        self._stopping = threading.Event()
        # A client that hangs fails its test; it must not keep the whole run from ending.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def now(self) -> View:
        """The latest view; of no generation before the first."""
        return self.views[-1] if self.views else View(generation=-1, member_id="", owned=frozenset())

    def stop(self) -> None:
        """Leave the group and return when done.

        Raises:
            AssertionError: The client hangs; the message says where.
        """
        self._stopping.set()
        self._thread.join(_STOPPED_WITHIN_S)
        assert not self._thread.is_alive(), f"the member did not stop:\n{self._where()}"

    def _where(self) -> str:
        """Where the thread is now."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame else "the thread has ended"

    @abstractmethod
    def _run(self) -> None: ...

    def _see(self, *, generation: int, member_id: str, owned: Iterable[PartitionKey]) -> None:
        view = View(generation=generation, member_id=member_id, owned=frozenset(map(tuple, owned)))
        if generation >= 0 and view != self.now:
            self.views.append(view)
            self.changed_at_s = time.monotonic()

    def _begin(self, places: Iterable[PartitionKey]) -> None:
        self._begun.update(dict.fromkeys(map(tuple, places), time.monotonic()))

    def _end(self, places: Iterable[PartitionKey]) -> None:
        now_s = time.monotonic()
        for topic, number in places:
            start = self._begun.pop((topic, number), None)
            if start is not None:
                self.stays.append(Stay(place=(topic, number), who=self.name, start=start, end=now_s))

    def _take(self, polled: dict[Any, Sequence[Any]]) -> None:
        self.read |= {(r.topic, r.partition, r.offset) for records in polled.values() for r in records}


class Members:
    """The members of one group; all are stopped in the end.

    Attributes:
        all: Those that are members now.
        gone: Those that were stopped.
    """

    def __init__(self) -> None:
        self.all: list[ThreadedMember] = []
        self.gone: list[ThreadedMember] = []

    def __enter__(self) -> "Members":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for member in list(self.all):
                stack.callback(self.stop, member)

    def add(self, member: ThreadedMember) -> ThreadedMember:
        """Stop this one too, in the end."""
        self.all.append(member)
        return member

    def stop(self, member: ThreadedMember) -> None:
        """Stop one now."""
        self.all.remove(member)
        member.stop()
        self.gone.append(member)

    def settled(
        self, places: Iterable[PartitionKey], *, after: int = -1
    ) -> dict[str, frozenset[PartitionKey]]:
        """Member id to partitions, once all agree for a while on a generation after that one and own each place once."""
        wanted = sorted(places)

        def agree() -> bool:
            views = [member.now for member in self.all]
            owned = sorted(place for view in views for place in view.owned)
            quiet = time.monotonic() - max(member.changed_at_s for member in self.all) > QUIET_S
            return (
                quiet
                and len({view.generation for view in views}) == 1
                and views[0].generation > after
                and owned == wanted
            )

        wait_until(agree, what=f"a settled group after generation {after}")
        return self.owned()

    def owned(self) -> dict[str, frozenset[PartitionKey]]:
        """Member id to partitions, as they are."""
        return {member.now.member_id: member.now.owned for member in self.all}

    @property
    def generation(self) -> int:
        """The newest generation that any member has seen."""
        return max(member.now.generation for member in self.all)
