"""A separate thread for Spark, so that Ctrl-C reaches the thread that waits for it.

pyspark takes Ctrl-C for itself when a session starts in the main thread, and a call into the JVM cannot be interrupted.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from pipeline.operate.background import carry_out

Result = TypeVar("Result")

# A signal that another thread has received is handled when the main one wakes up.
_LOOK_EVERY_S = 0.5
_INTERRUPTED = 130
"""The exit status by which shells show that Ctrl-C ended a process."""


class Worker:
    """Runs one thing after another. The process ends without waiting for it."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="sql", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._todo.get()()

    def begin(self, what: Callable[[], Result]) -> "Future[Result]":
        """Run it when all work begun before is done."""
        future: Future[Result] = Future()
        self._todo.put(lambda: carry_out(what, future))
        return future


def result_of(future: "Future[Result]", cancel: Callable[[], None]) -> Result:
    """Wait for the result of `Worker.begin`, or raise the error of the work.

    After Ctrl-C, `cancel` is called again and again until the work has ended: a statement that Spark still plans has no
    job to cancel yet.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was begun has ended.
        SystemExit: Ctrl-C came twice, and it has not ended.
    """
    try:
        _until_done(future)
    except KeyboardInterrupt:
        try:
            _until_done(future, cancel)
        except KeyboardInterrupt:
            # Whatever came next would wait behind it.
            raise SystemExit(_INTERRUPTED) from None
        raise
    return future.result()


def _until_done(future: "Future[Result]", meanwhile: Callable[[], None] | None = None) -> None:
    while not future.done():
        if meanwhile is not None:
            meanwhile()
        wait([future], timeout=_LOOK_EVERY_S)
