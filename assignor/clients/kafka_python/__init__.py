"""Assignors for `partition_assignment_strategy` of kafka-python: the strategies, and the plans of the control topic.

Imports `clients.plugin` and kafka-python. Start with `assignors`; `private` is what the client does not offer.
"""

from assignor.clients.kafka_python.assignors import (
    COOPERATIVE,
    EAGER,
    Following,
    MemberAssignor,
    StrategyAssignor,
)
from assignor.clients.plugin.membership import NotAttachedError

__all__ = ["COOPERATIVE", "EAGER", "Following", "MemberAssignor", "NotAttachedError", "StrategyAssignor"]
