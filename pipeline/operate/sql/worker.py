"""A thread of its own for Spark, so that Ctrl-C reaches the one who waits for it.

pyspark takes Ctrl-C for itself when a session starts in the main thread, and a call into the JVM cannot be interrupted.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

Result = TypeVar("Result")

# A signal that another thread has received is handled when the main one wakes up.
_LOOK_EVERY_S = 0.5


class Worker:
    """Runs one thing after another. The process ends without waiting for it."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="sql", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._todo.get()()

    def begin(self, what: Callable[[], Result]) -> "Future[Result]":
        """Have it run when all that was begun before is done."""
        future: Future[Result] = Future()

        def _run() -> None:
            try:
                future.set_result(what())
            except BaseException as error:  # noqa: BLE001 - raised again by who waits
                future.set_exception(error)

        self._todo.put(_run)
        return future


def result_of(future: "Future[Result]", cancel: Callable[[], None]) -> Result:
    """What comes of it, or what it raises.

    Args:
        future: Of `Worker.begin`.
        cancel: Called on the first Ctrl-C, to make it end soon. A second one is not waited for.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was begun has ended, unless it came twice.
    """
    try:
        _until_done(future)
    except KeyboardInterrupt:
        cancel()
        _until_done(future)
        raise
    return future.result()


def _until_done(future: "Future[Result]") -> None:
    while not future.done():
        wait([future], timeout=_LOOK_EVERY_S)
