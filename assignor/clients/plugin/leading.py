"""The only module of a follower that imports numpy, and only when its member leads the group.

A member that joins, takes its assignment and reads the control topic never calls it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assignor.clients.plugin.dialect import Dialect, Joined
from assignor.clients.plugin.lags import Lags
from assignor.errors import AssignorError
from assignor.protocol.control import ControlRecord
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.strategies.catalogue import StrategyFacts


class CannotLeadError(AssignorError, ImportError):
    """A member that leads its group cannot import numpy; the message says what to install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """The assignment of a leader, by names; see `leader.LeaderDecision`."""

    placed: Mapping[str, TopicPartitions]
    """Partitions of every member for now, by member id."""
    arrived: frozenset[str]
    """Members whose assignment matches the plan; empty if a strategy assigned."""
    plan_epoch: int | None
    """Epoch of the plan; None if a strategy assigned."""
    why: str
    """One sentence for the log."""
    generation: int
    """Newest generation, or epoch of KIP-315, of any claim; `NO_GENERATION` without claims."""


def lead(
    *,
    counts: Mapping[str, int],
    members: Sequence[Joined],
    strategy: StrategyFacts,
    plan: ControlRecord | None,
    dialect: Dialect,
    lags: Lags | None,
) -> Led:
    """The decision of `leader.decide`, by names.

    Raises:
        CannotLeadError: numpy cannot be imported.
        InvalidGroupError: A member id is there twice.
    """
    try:
        from assignor.clients.plugin.leader import decide  # noqa: PLC0415 - followers go without numpy
    except ImportError as error:
        raise CannotLeadError(
            f"this member leads its group and computes its assignment with numpy, which cannot be imported "
            f"({error}): install it with: pip install 'numpy>=2,<3'"
        ) from error
    decision = decide(
        counts=counts, members=members, strategy=strategy, plan=plan, dialect=dialect, lags=lags
    )
    placed = decision.placed()
    return Led(
        placed=placed,
        arrived=frozenset() if decision.plan_epoch is None else decision.arrived(placed),
        plan_epoch=decision.plan_epoch,
        why=decision.why,
        generation=decision.generation,
    )
