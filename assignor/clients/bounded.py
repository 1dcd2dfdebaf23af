"""Runs client calls that may never return in another thread, with a timeout."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoResultError
from threading import Thread
from typing import TypeVar

ResultT = TypeVar("ResultT")


def within(seconds: float, work: Callable[[], ResultT]) -> ResultT:
    """Run the work in a daemon thread and return its result.

    Raises:
        TimeoutError: The work did not end in time; its thread runs on.
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
