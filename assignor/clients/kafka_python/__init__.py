"""Assignors for `partition_assignment_strategy` of kafka-python: the strategies, and the plans of the control topic.

Imports `clients.plugin` and kafka-python. Start with `following`, then `assignors`; `background` is what follows the
topics, `private` what the client does not offer.
"""

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
from assignor.clients.plugin.membership import NotAttachedError

__all__ = [
    "COOPERATIVE",
    "EAGER",
    "Following",
    "ForkedError",
    "LagAwareAssignor",
    "MemberAssignor",
    "NotAttachedError",
    "StrategyAssignor",
    "default_assignors",
]
