"""The pure core of lagwise: consumer groups as arrays, strategies that assign them, and the judge of both.

Public are the names listed here, the packages `clients.confluent`, `clients.kafka_python` and `clients.aiokafka`, and
`protocol.control`; everything else may move. Imports numpy; start with `model`, then `strategies`.
"""

from assignor.model.assignment import Assignment, Unassigned
from assignor.model.by_member import by_member
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from assignor.strategies.registry import STRATEGIES, RebalanceProtocol, Strategy, strategy
from assignor.strategies.selection import DEFAULT_ASSIGNORS, Selection, rebalance_protocol, select_assignor

__all__ = [
    "DEFAULT_ASSIGNORS",
    "STRATEGIES",
    "Assignment",
    "Group",
    "Member",
    "RebalanceProtocol",
    "Selection",
    "Strategy",
    "Topics",
    "Unassigned",
    "build_group",
    "by_member",
    "rebalance_protocol",
    "select_assignor",
    "strategy",
]
