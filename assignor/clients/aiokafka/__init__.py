"""Assignors for `partition_assignment_strategy` of aiokafka: the strategies, and the plans of the control topic.

Imports `clients.plugin` and aiokafka. Start with `following`, then `assignors`; `background` is what follows the
topics, `private` what the client does not offer.
"""

# ruff: noqa: E402 - another version of the client is refused before an import of it fails without saying why
from assignor.clients.client_version import require

require(
    "aiokafka",
    least=(0, 14, 0),
    below=(0, 15),
    parts=(
        "aiokafka.consumer.group_coordinator:GroupCoordinator._perform_assignment",
        "aiokafka.consumer.group_coordinator:GroupCoordinator.request_rejoin",
        "aiokafka.consumer.group_coordinator:NoGroupCoordinator",
        "aiokafka.coordinator.protocol:ConsumerProtocolMemberAssignment",
    ),
    extra="aiokafka",
)

from assignor.clients.aiokafka.assignors import MemberAssignor, StrategyAssignor, default_assignors
from assignor.clients.aiokafka.following import Following
from assignor.clients.aiokafka.lag_aware import LagAwareAssignor
from assignor.clients.plugin.attached import FollowingMisusedError
from assignor.clients.plugin.leading import CannotLeadError
from assignor.clients.plugin.membership import NotAttachedError

__all__ = [
    "CannotLeadError",
    "Following",
    "FollowingMisusedError",
    "LagAwareAssignor",
    "MemberAssignor",
    "NotAttachedError",
    "StrategyAssignor",
    "default_assignors",
]
