"""Assignors for `partition_assignment_strategy` of aiokafka: the strategies, and the plans of the control topic.

Imports `clients.plugin` and aiokafka. Start with `assignors`; `private` is what the client does not offer.
"""

from assignor.clients.aiokafka.assignors import Following, MemberAssignor, StrategyAssignor
from assignor.clients.plugin.membership import NotAttachedError

__all__ = ["Following", "MemberAssignor", "NotAttachedError", "StrategyAssignor"]
