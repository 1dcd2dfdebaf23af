"""Store: the heartbeat of the driver that owns the tables, a small file next to them.

A separate thread replaces `<tables.root>/_owner.json` every few seconds, however long a batch takes and whether or not
Kafka answers. It shows that the process is alive, and its report shows whether batches progress. It fences no driver:
the term in the tables does that. Its readers are standbys, which need to know when to take over, and health checks.

Tables in a bucket of S3 have it as an object; other object stores have none.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from types import TracebackType

from pipeline import clock
from pipeline.errors import FencedError, StoreError, without_queries
from pipeline.tables.owner.beat_file import BeatFile
from pipeline.tables.owner.driver_report import DriverReport

log = logging.getLogger(__name__)

BEAT_EVERY_S = 5.0
_FAILURE_SAID_EVERY_MS = 60_000
SILENT_AFTER_S = 60.0
"""Twelve beats missed. A host that swaps, a paused virtual machine or a slow network disk may cost some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Contents of the file."""

    owner: str
    """Same value as in `planner_state`."""
    term: int
    at_ms: int
    """When it was written, by the owner's clock: ms since the epoch."""
    is_stopped: bool = False
    """The owner has ended in good order: the tables are free."""
    report: DriverReport | None = field(default=None, repr=False)
    """The owner's report; None from a version that writes none."""


def read(root: str, storage_options: Mapping[str, str]) -> Beat | None:
    """Return the newest heartbeat; None without such a file.

    Args:
        root: Of the tables.
        storage_options: Of delta-rs, secrets resolved.

    Raises:
        StoreError: The file exists but cannot be read.
    """
    return _read(BeatFile(root, storage_options))


def _read(file: BeatFile) -> Beat | None:
    try:
        text = file.read()
        if text is None:
            return None
        values = json.loads(text)
        report = values.get("report")
        return Beat(
            owner=values["owner"],
            term=values["term"],
            at_ms=values["at_ms"],
            is_stopped=values["is_stopped"],
            report=None if report is None else DriverReport.of(report),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{file.place} cannot be read: {without_queries(str(error))}") from error


def is_kept(root: str) -> bool:
    """Return whether tables under `root` have such a file while a driver runs."""
    return BeatFile(root, {}).is_kept


class Heartbeat:
    """Writes the file from `begin`, or from a confirmed claim, to the end of the block; before that nothing."""

    def __init__(
        self,
        root: str,
        storage_options: Mapping[str, str],
        *,
        every_s: float = BEAT_EVERY_S,
        report: Callable[[], DriverReport | None] = lambda: None,
    ) -> None:
        """Nothing is written yet.

        Args:
            root: Of the tables.
            storage_options: Of delta-rs, secrets resolved.
            every_s: Time between two beats.
            report: Returns the report of each beat.
        """
        self.every_s = every_s
        self._report = report
        self._file = BeatFile(root, storage_options)
        self._lock = threading.Lock()
        self._owner: tuple[str, int] | None = None
        self._failure_said_ms = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_until_end, name="heartbeat", daemon=True)

    def claim(self, owner: str) -> None:
        """Write once, replacing any existing file."""
        with self._lock:
            last = self._seen()
            # Of the same term: an owner that lives after all goes on writing.
            self._owner = (owner, last.term if last else 0)
            self._write(is_stopped=False)

    def is_confirmed(self) -> bool:
        """Return whether the claim still holds; if so, keep writing from now on."""
        is_mine = self._is_mine()
        if is_mine and self._owner:
            self.begin(*self._owner)
        return is_mine

    def begin(self, owner: str, term: int) -> None:
        """Write now and regularly from now on, as the owner of `term`; a second call continues under the new name."""
        with self._lock:
            self._owner = (owner, term)
            self._write(is_stopped=False)
        if not self._thread.is_alive():
            self._thread.start()

    def __enter__(self) -> "Heartbeat":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell that the tables are free, unless they are another driver's."""
        self._ended.set()
        # A new owner replaces what is there within seconds.
        if isinstance(error, FencedError):
            return
        with self._lock:
            if self._is_mine():
                self._write(is_stopped=True)

    def _beat_until_end(self) -> None:
        while not self._ended.wait(self.every_s):
            with self._lock:
                if not self._ended.is_set() and not self._is_replaced():
                    self._write(is_stopped=False)

    def _is_mine(self) -> bool:
        beat = self._seen()
        return beat is not None and self._owner is not None and beat.owner == self._owner[0]

    def _is_replaced(self) -> bool:
        beat = self._seen()
        return beat is not None and self._owner is not None and beat.term > self._owner[1]

    def _seen(self) -> Beat | None:
        try:
            return _read(self._file)
        except StoreError:
            return None

    def _write(self, *, is_stopped: bool) -> None:
        if self._owner is None:
            return
        owner, term = self._owner
        beat = Beat(
            owner=owner, term=term, at_ms=clock.now_ms(), is_stopped=is_stopped, report=self._report()
        )
        try:
            self._file.write(json.dumps(asdict(beat)), by=owner)
        except OSError as error:
            # A disk that is full stops the batches as well, and then a standby is right to take over.
            if beat.at_ms - self._failure_said_ms >= _FAILURE_SAID_EVERY_MS:
                self._failure_said_ms = beat.at_ms
                log.warning(
                    "the heartbeat cannot be written", extra={"file": self._file.place, "error": str(error)}
                )
