"""The pure core of lagwise: consumer groups as arrays, strategies that assign them, and the judge of both."""

from assignor.assignment import Assignment, Unassigned
from assignor.by_member import by_member
from assignor.group import Group
from assignor.members import Member, build_group
from assignor.protocol_choice import DEFAULT_ASSIGNORS, Selection, rebalance_protocol, select_assignor
from assignor.registry import STRATEGIES, RebalanceProtocol, Strategy, strategy
from assignor.topics import Topics

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
