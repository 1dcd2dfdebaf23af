"""Calls of clients that may never return, waited for in another thread for so long and no longer."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoResultError
from threading import Thread
from typing import TypeVar

ResultT = TypeVar("ResultT")


def within(seconds: float, work: Callable[[], ResultT]) -> ResultT:
    """What the work gives, in a thread of its own that does not keep the process alive.

    Raises:
        TimeoutError: It did not end in time; the thread is left to itself.
        Exception: Whatever the work raises.
    """
    result: Future[ResultT] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
            result.set_exception(error)

    Thread(target=run, name="lagwise-bounded", daemon=True).start()
    try:
        return result.result(seconds)
    except NoResultError as error:
        if result.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from error
