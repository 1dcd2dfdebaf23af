"""KIP-169 with aiokafka: the leader asks for the group's lag and places it evenly."""

import inspect
import logging
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from assignor.clients.aiokafka.assignors import MemberAssignor
from assignor.clients.aiokafka.bounded import within
from assignor.clients.plugin.lags import LAG_WITHIN_S, Lags, lags_of, warn_of_no_lag
from assignor.clients.plugin.membership import under_strategy
from assignor.strategies.names import LAG_AWARE

log = logging.getLogger(__name__)


class LagAwareAssignor(MemberAssignor):
    """Balances counts in every topic, then lag (KIP-169).

    The leader asks for committed and log offsets through its own clients, for at most two seconds. If the answer is
    incomplete by then, `sticky` assigns, and a log line reports it.

    Args:
        group_id: The consumer's group.
        auto_offset_reset: Setting of the consumer: with `latest`, a partition without a commit has no lag.
        connection: Settings of `AIOKafkaConsumer`: servers, security.

    Raises:
        TypeError: A setting that `AIOKafkaConsumer` does not have.
    """

    def __init__(self, *, group_id: str, auto_offset_reset: str = "latest", **connection: Any) -> None:
        inspect.signature(AIOKafkaConsumer).bind(**connection)
        super().__init__(under_strategy(LAG_AWARE, knows_lag=True), ask_lag=self._asked)
        self._group_id, self._from_latest = group_id, auto_offset_reset == "latest"
        self._connection = connection

    async def _asked(self, topics: frozenset[str]) -> Lags | None:
        try:
            return await within(LAG_WITHIN_S, self._ask(topics))
        except Exception as error:  # noqa: BLE001 - a leader that raised would stop its group
            warn_of_no_lag(self._group_id, error)
            return None

    async def _ask(self, topics: frozenset[str]) -> Lags:
        known = inspect.signature(AIOKafkaAdminClient).parameters
        admin = AIOKafkaAdminClient(**{k: v for k, v in self._connection.items() if k in known})
        asker = AIOKafkaConsumer(**{**self._connection, "group_id": None})
        try:
            await admin.start()
            await asker.start()
            numbers = await admin.describe_topics(sorted(topics))
            partitions = [
                TopicPartition(topic["topic"], entry["partition"])
                for topic in numbers
                for entry in topic["partitions"]
            ]
            # By name: without them, a refused request looks like a group without commits.
            committed = await admin.list_consumer_group_offsets(self._group_id, partitions=partitions)
            unknown = len(set(partitions) - committed.keys())
            if unknown:
                raise KafkaError(f"the coordinator did not return the commits of {unknown} partitions")
            starts = await asker.beginning_offsets(partitions)
            ends = await asker.end_offsets(partitions)
        finally:
            await _quietly(admin.close())
            await _quietly(asker.stop())
        return lags_of(
            committed={place: at.offset for place, at in committed.items()},
            starts=starts,
            ends=ends,
            from_latest=self._from_latest,
        )


async def _quietly(closing: Coroutine[Any, Any, None]) -> None:
    try:
        await closing
    except Exception as error:  # noqa: BLE001 - what it was asked for is known, or the reason why not
        log.debug("a client did not close", extra={"problem": str(error)})
