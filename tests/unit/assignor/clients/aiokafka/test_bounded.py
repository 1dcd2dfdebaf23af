"""Awaiting for so long and no longer."""

import asyncio
import contextlib

import pytest
from aiokafka.errors import KafkaConnectionError

from assignor.clients.aiokafka.bounded import within


def test_work_that_holds_back_its_cancellation_is_left_behind() -> None:
    async def stubborn() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.2)
                return

    with pytest.raises(TimeoutError, match="no answer within"):
        asyncio.run(within(0.01, stubborn()))


def test_work_that_ends_in_time_gives_what_it_gives() -> None:
    async def work(*, fails: bool) -> int:
        await asyncio.sleep(0)
        if fails:
            raise KafkaConnectionError
        return 7

    assert asyncio.run(within(5, work(fails=False))) == 7
    with pytest.raises(KafkaConnectionError):
        asyncio.run(within(5, work(fails=True)))
