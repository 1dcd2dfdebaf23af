"""Strategies by name: what an operator writes in the config, and what a member lists as its assignor."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from assignor.errors import InvalidOptionError, UnknownStrategyError
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.model.java_order import java_order
from assignor.strategies import lag_aware, roundrobin, stream_join
from assignor.strategies.lag_sticky import strategy as lag_sticky
from assignor.strategies.options import Choice, Option, OptionValue
from assignor.strategies.range import strategy as range_assignor
from assignor.strategies.sticky import constrained as constrained_sticky
from assignor.strategies.sticky import cooperative as cooperative_sticky
from assignor.strategies.sticky import strategy as sticky


class RebalanceProtocol(enum.IntEnum):
    """How members give up partitions; a higher one is preferred, as in Kafka's ConsumerPartitionAssignor."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A named function from a group to an assignment."""

    name: str
    protocols: tuple[RebalanceProtocol, ...]
    """Under which a target of this strategy may be applied, ascending."""
    options: tuple[Option, ...] = ()
    reads_lag: bool = False
    """Does the assignment depend on lag, so that unknown lag matters to it."""
    joins: bool = False
    """Must the partitions of one number change hands together (see `handover.next_step`)."""
    moves_whole: bool = False
    """Is a plan always the whole target? A part of it would not be an assignment of this strategy."""
    function: Callable[..., Assignment]

    @property
    def has_budget(self) -> bool:
        """Can the strategy be told how many moves it may make."""
        return any(option.name == "max_moves" for option in self.options)

    def check_options(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """Every option of the strategy with its given or default value.

        Raises:
            InvalidOptionError: The strategy has no such option, or the option takes no such value.
        """
        known = {option.name: option for option in self.options}
        for name, value in options.items():
            if name not in known:
                available = ", ".join(known) or "none"
                raise InvalidOptionError(self.name, name, f"is not known; there are: {available}")
            problem = known[name].problem(value)
            if problem is not None:
                raise InvalidOptionError(self.name, name, problem)
        given = cast("Mapping[str, OptionValue]", options)
        return {name: given.get(name, option.default) for name, option in known.items()}

    def assign(self, group: Group, options: Mapping[str, object]) -> Assignment:
        """The assignment of `group`.

        Raises:
            InvalidOptionError: See `check_options`.
            UnequalSubscriptionsError: The strategy needs equal subscriptions and they differ.
        """
        return self.function(group, **self.check_options(options))


_STRATEGIES = (
    Strategy(
        name=constrained_sticky.NAME,
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        options=(Choice(name="old_claims", words=("drop", "keep")),),
        function=constrained_sticky.assign,
    ),
    Strategy(
        name=cooperative_sticky.NAME,
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        function=cooperative_sticky.assign,
    ),
    Strategy(
        name=lag_aware.NAME,
        # Cooperative only as a published target, which stays as it is from one step to the next: asked again, the
        # strategy would see other lags and move again.
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        options=(Choice(name="scope", words=("topic", "group")), Choice(name="ties", words=("lag", "kip"))),
        reads_lag=True,
        moves_whole=True,
        function=lag_aware.assign,
    ),
    Strategy(
        name=lag_sticky.NAME,
        # Cooperative only as a published target, as with lag-aware.
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        options=lag_sticky.OPTIONS,
        reads_lag=True,
        function=lag_sticky.assign,
    ),
    Strategy(
        name=range_assignor.NAME,
        protocols=(RebalanceProtocol.EAGER,),
        function=range_assignor.assign,
    ),
    Strategy(
        name=roundrobin.NAME,
        protocols=(RebalanceProtocol.EAGER,),
        function=roundrobin.assign,
    ),
    Strategy(
        name=sticky.NAME,
        protocols=(RebalanceProtocol.EAGER,),
        function=sticky.assign,
    ),
    Strategy(
        name=stream_join.NAME,
        protocols=(RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE),
        joins=True,
        function=stream_join.assign,
    ),
)

STRATEGIES: Mapping[str, Strategy] = {
    entry.name: entry for entry in sorted(_STRATEGIES, key=lambda entry: java_order(entry.name))
}
"""Every strategy, by name, in name order."""


def strategy(name: str) -> Strategy:
    """The strategy of this name.

    Raises:
        UnknownStrategyError: There is none; the message names those there are.
    """
    if name not in STRATEGIES:
        raise UnknownStrategyError(name, tuple(STRATEGIES))
    return STRATEGIES[name]
