"""The facts of each strategy without its function, so that a consumer that computes nothing needs no numpy."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from assignor.errors import InvalidOptionError, UnknownStrategyError
from assignor.model.java_order import java_order
from assignor.strategies import names
from assignor.strategies.lag_sticky.options import OPTIONS as LAG_STICKY_OPTIONS
from assignor.strategies.options import Choice, Option, OptionValue


class RebalanceProtocol(enum.IntEnum):
    """How members give up partitions; a higher one is preferred, as in Kafka's ConsumerPartitionAssignor."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFacts:
    """The facts of a strategy without its function, and so without arrays."""

    name: str
    protocols: tuple[RebalanceProtocol, ...]
    """Protocols under which a target of this strategy may be applied, ascending."""
    options: tuple[Option, ...] = ()
    reads_lag: bool = False
    """Whether the assignment depends on lag, so that unknown lag matters."""
    joins: bool = False
    """Whether partitions of one number must change hands together (see `handover.next_step`)."""
    moves_whole: bool = False
    """Whether a plan is always the whole target: a part of it is no assignment of this strategy."""

    @property
    def has_budget(self) -> bool:
        """Whether an option limits the number of moves."""
        return any(option.name == "max_moves" for option in self.options)

    def check_options(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """Every option of the strategy with its given or default value.

        Raises:
            InvalidOptionError: The strategy has no such option, or the value is invalid.
        """
        known = {option.name: option for option in self.options}
        for name, value in options.items():
            if name not in known:
                available = ", ".join(known) or "none"
                raise InvalidOptionError(self.name, name, f"is unknown; known options are: {available}")
            problem = known[name].problem(value)
            if problem is not None:
                raise InvalidOptionError(self.name, name, problem)
        given = cast("Mapping[str, OptionValue]", options)
        return {name: given.get(name, option.default) for name, option in known.items()}


_FACTS = (
    StrategyFacts(
        name=names.CONSTRAINED_COOPERATIVE_STICKY,
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        options=(Choice(name="old_claims", words=("drop", "keep")),),
    ),
    StrategyFacts(
        name=names.COOPERATIVE_STICKY,
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
    ),
    StrategyFacts(
        name=names.LAG_AWARE,
        # Cooperative only as a published target, which stays as it is from one step to the next: asked again, the
        # strategy would see other lags and move again.
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        options=(Choice(name="scope", words=("topic", "group")), Choice(name="ties", words=("lag", "kip"))),
        reads_lag=True,
        moves_whole=True,
    ),
    StrategyFacts(
        name=names.LAG_STICKY,
        # Cooperative only as a published target, as with lag-aware.
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        options=LAG_STICKY_OPTIONS,
        reads_lag=True,
    ),
    StrategyFacts(
        name=names.RANGE,
        protocols=(RebalanceProtocol.EAGER,),
    ),
    StrategyFacts(
        name=names.ROUNDROBIN,
        protocols=(RebalanceProtocol.EAGER,),
    ),
    StrategyFacts(
        name=names.STICKY,
        protocols=(RebalanceProtocol.EAGER,),
    ),
    StrategyFacts(
        name=names.STICKY_STREAM_JOIN,
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        joins=True,
    ),
)

CATALOGUE: Mapping[str, StrategyFacts] = {
    entry.name: entry for entry in sorted(_FACTS, key=lambda entry: java_order(entry.name))
}
"""The facts of every strategy, by name, in name order."""


def facts_of(name: str) -> StrategyFacts:
    """The facts of the strategy of this name.

    Raises:
        UnknownStrategyError: There is none; the message has the known names.
    """
    if name not in CATALOGUE:
        raise UnknownStrategyError(name, tuple(CATALOGUE))
    return CATALOGUE[name]
