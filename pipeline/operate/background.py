"""Work in a thread that does not keep the process alive."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> "Future[T]":
    """The result of `work`, once it is done.

    An executor would wait for its threads at exit, even after a second Ctrl-C.
    """
    future: Future[T] = Future()
    Thread(target=carry_out, args=(work, future), daemon=True).start()
    return future


def carry_out(work: Callable[[], T], future: "Future[T]") -> None:
    """Do the work, and give its result or error to the future."""
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
        future.set_exception(error)
