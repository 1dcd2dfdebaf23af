"""The pure core of lagwise: consumer groups as arrays, strategies that assign them, and the judge of both.

Public are the names listed here, the packages `clients.confluent`, `clients.kafka_python` and `clients.aiokafka`, and
`protocol.control`; everything else may move. Start with `model`, then `strategies`. Both import numpy, so the names are
looked up when they are asked for: a follower that computes nothing goes without.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assignor.model.assignment import Assignment, Unassigned
    from assignor.model.by_member import by_member
    from assignor.model.group import Group
    from assignor.model.members import Member, build_group
    from assignor.model.topics import Topics
    from assignor.strategies.catalogue import RebalanceProtocol
    from assignor.strategies.registry import STRATEGIES, Strategy, strategy
    from assignor.strategies.selection import (
        DEFAULT_ASSIGNORS,
        Selection,
        rebalance_protocol,
        select_assignor,
    )

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

# Those that need no numpy first.
_MODULES = (
    "strategies.catalogue",
    "strategies.selection",
    "model.assignment",
    "model.by_member",
    "model.group",
    "model.members",
    "model.topics",
    "strategies.registry",
)


def __getattr__(name: str) -> object:
    if name in __all__:
        found = (import_module(f"{__name__}.{module}") for module in _MODULES)
        return next(getattr(module, name) for module in found if hasattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
