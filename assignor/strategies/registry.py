"""Strategies by name, as in the configuration and in a member's list of assignors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies import lag_aware, names, roundrobin, stream_join
from assignor.strategies.catalogue import CATALOGUE, StrategyFacts, facts_of
from assignor.strategies.lag_sticky import strategy as lag_sticky
from assignor.strategies.range import strategy as range_assignor
from assignor.strategies.sticky import constrained as constrained_sticky
from assignor.strategies.sticky import cooperative as cooperative_sticky
from assignor.strategies.sticky import strategy as sticky


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy(StrategyFacts):
    """A named function from a group to an assignment."""

    function: Callable[..., Assignment]

    def assign(self, group: Group, options: Mapping[str, object]) -> Assignment:
        """The assignment of `group`.

        Raises:
            InvalidOptionError: See `check_options`.
            UnequalSubscriptionsError: The strategy needs equal subscriptions and they differ.
        """
        return self.function(group, **self.check_options(options))


_FUNCTIONS: Mapping[str, Callable[..., Assignment]] = {
    names.CONSTRAINED_COOPERATIVE_STICKY: constrained_sticky.assign,
    names.COOPERATIVE_STICKY: cooperative_sticky.assign,
    names.LAG_AWARE: lag_aware.assign,
    names.LAG_STICKY: lag_sticky.assign,
    names.RANGE: range_assignor.assign,
    names.ROUNDROBIN: roundrobin.assign,
    names.STICKY: sticky.assign,
    names.STICKY_STREAM_JOIN: stream_join.assign,
}


def _with_function(facts: StrategyFacts) -> Strategy:
    known = {field.name: getattr(facts, field.name) for field in fields(facts)}
    return Strategy(**known, function=_FUNCTIONS[facts.name])


STRATEGIES: Mapping[str, Strategy] = {name: _with_function(facts) for name, facts in CATALOGUE.items()}
"""Every strategy, by name, in name order."""


def strategy(name: str) -> Strategy:
    """The strategy of this name.

    Raises:
        UnknownStrategyError: There is none; the message has the known names.
    """
    return STRATEGIES[facts_of(name).name]
