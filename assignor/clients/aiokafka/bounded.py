"""Waiting for aiokafka, which at times neither ends what it was asked nor lets itself be cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


async def within(seconds: float, work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Return the result of the work; cancel and abandon it if it does not end in time.

    Raises:
        TimeoutError: It did not end in time.
        ConnectionError: The client has cancelled it, as it does if a connection breaks; the caller's task was not.
        Exception: Whatever it raises.
    """
    task = asyncio.ensure_future(work)
    # What nobody waits for any more may raise what it likes.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise TimeoutError(f"no answer within {seconds:g} s")
        if task.cancelled():
            raise ConnectionError("the client gave up")
        return task.result()
    finally:
        task.cancel()
