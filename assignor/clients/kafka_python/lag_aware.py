"""KIP-169 with kafka-python: the leader asks for the group's lag and balances it."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from assignor.clients.bounded import within
from assignor.clients.kafka_python.assignors import EAGER, MemberAssignor
from assignor.clients.kafka_python.making import check, made
from assignor.clients.plugin.lags import LAG_WITHIN_S, Lags, lags_of, warn_of_no_lag
from assignor.clients.plugin.membership import under_strategy
from assignor.strategies.names import LAG_AWARE


class LagAwareAssignor(MemberAssignor):
    """Balances counts in every topic, then lag (KIP-169). Eager only, because lag changes between two steps.

    The leader asks for committed and log offsets through its own clients, for at most two seconds. If the answer is
    incomplete by then, `sticky` assigns, and a log line reports it.

    Args:
        group_id: The consumer's group.
        auto_offset_reset: Setting of the consumer. With `latest`, a partition without a commit has no lag.
        connection: Settings of `KafkaConsumer`: servers, security, client id.

    Raises:
        KafkaConfigurationError: `KafkaConsumer` does not have one of the settings.
    """

    def __init__(self, *, group_id: str, auto_offset_reset: str = "latest", **connection: Any) -> None:
        check(connection)
        super().__init__(under_strategy(LAG_AWARE, knows_lag=True), EAGER, ask_lag=self._lags)
        self._group_id, self._from_latest = group_id, auto_offset_reset == "latest"
        self._connection = connection

    def _lags(self, counts: Mapping[str, int]) -> Lags | None:
        try:
            return within(LAG_WITHIN_S, lambda: self._asked(counts))
        except Exception as error:  # noqa: BLE001 - a leader that raised would stop its group
            warn_of_no_lag(self._group_id, error)
            return None

    def _asked(self, counts: Mapping[str, int]) -> Lags:
        partitions = [TopicPartition(topic, n) for topic in counts for n in range(counts[topic])]
        within_ms = int(LAG_WITHIN_S * 1000)
        of_admin = {k: v for k, v in self._connection.items() if k in KafkaAdminClient.DEFAULT_CONFIG}
        bounds = {"bootstrap_timeout_ms": within_ms, "request_timeout_ms": within_ms}
        with closing(made(KafkaAdminClient, **{**of_admin, **bounds})) as admin:
            committed = admin.list_group_offsets({self._group_id: partitions})[self._group_id]
        # The client refuses the name of a static member without a group.
        of_no_group = {"group_id": None, "group_instance_id": None}
        alone = {**self._connection, **of_no_group, "bootstrap_timeout_ms": within_ms}
        with closing(made(KafkaConsumer, **alone)) as asker:
            starts = asker.beginning_offsets(partitions, timeout_ms=within_ms)
            ends = asker.end_offsets(partitions, timeout_ms=within_ms)
        return lags_of(
            committed={place: at.offset for place, at in committed.items()},
            starts=starts,
            ends=ends,
            from_latest=self._from_latest,
        )
