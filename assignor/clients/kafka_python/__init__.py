"""Assignors for `partition_assignment_strategy` of kafka-python: the strategies, and the plans of the control topic.

Imports `clients.plugin` and kafka-python. Start with `following`, then `assignors`; `background` reads and writes
lagwise's topics, `private` reaches into the client.
"""

# ruff: noqa: E402 - refuse an unsupported version of the client with a reason, before one of its imports fails
from assignor.clients.client_version import require

require(
    "kafka-python",
    least=(3, 0, 12),
    below=(3, 1),
    parts=(
        "kafka.cluster:ClusterMetadata.topic_id",
        "kafka.coordinator.assignors.abstract:RebalanceProtocol",
        "kafka.coordinator.base:BaseCoordinator.need_rejoin",
        "kafka.coordinator.base:BaseCoordinator.rebalance_in_progress",
        "kafka.coordinator.base:BaseCoordinator.request_rejoin",
        "kafka.coordinator.base:Generation.is_lost",
        "kafka.protocol.consumer.metadata:ConsumerProtocolSubscription",
    ),
    extra="kafka-python",
)

from assignor.clients.kafka_python.assignors import (
    COOPERATIVE,
    EAGER,
    MemberAssignor,
    StrategyAssignor,
    default_assignors,
)
from assignor.clients.kafka_python.background import ForkedError
from assignor.clients.kafka_python.following import Following
from assignor.clients.kafka_python.lag_aware import LagAwareAssignor
from assignor.clients.plugin.attached import FollowingMisusedError
from assignor.clients.plugin.leading import CannotLeadError
from assignor.clients.plugin.membership import NotAttachedError

__all__ = [
    "COOPERATIVE",
    "EAGER",
    "CannotLeadError",
    "Following",
    "FollowingMisusedError",
    "ForkedError",
    "LagAwareAssignor",
    "MemberAssignor",
    "NotAttachedError",
    "StrategyAssignor",
    "default_assignors",
]
