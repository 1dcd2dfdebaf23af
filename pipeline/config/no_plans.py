"""Settings that keep all plans from moving anything, in principle or in practice."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from string import ascii_letters, digits
from typing import Any, Literal, NamedTuple

from pipeline.config.model import GuardsConfig, PlanConfig
from pipeline.name_filter import NameFilter

_MUCH = 0.5
"""Lag that a plan can save in small groups: if one of two equal members has everything, half of it."""
_LONG_S = 3600
"""Seconds of a price that only groups hours behind can pay."""
_DAY_S = 86_400
_TO_LOOK_S = 120
"""Time that an operator needs to read a plan before approving it."""
_PRICES = ("move_cost_s", "floor_s", "move_pause_s", "group_pause_s")
_LETTERS = ascii_letters + digits + "._-"
_LONGEST = 249


class _Scope(NamedTuple):
    """A table of settings, with its effective values."""

    name: str
    guards: GuardsConfig
    set_here: frozenset[str]
    """Guards that are set in this table."""
    options: Mapping[str, Any]
    dry_run: bool | Literal["approve"]
    sets_dry_run: bool
    remedy: str


def never_a_plan(plan: PlanConfig) -> Iterator[str]:
    """One line per setting, each beginning with its key."""
    for scope in _scopes(plan):
        yield from _by_guards(scope, plan)
        yield from _by_options(scope)
        if scope.sets_dry_run and scope.dry_run == "approve" and plan.valid_for_s < _TO_LOOK_S:
            yield (
                f'{scope.name}.dry_run: "approve" leaves an operator plan.valid_for_s = {plan.valid_for_s} s to look '
                f"at a plan and approve it; set valid_for_s to {_TO_LOOK_S} or more"
            )


def _scopes(plan: PlanConfig) -> Iterator[_Scope]:
    yield _Scope(
        "plan",
        plan.guards,
        frozenset(plan.guards.model_fields_set),
        {},
        plan.dry_run,
        sets_dry_run=True,
        remedy="set exclude for groups without plans",
    )
    for number, rule in enumerate(plan.groups):
        if not rule.exclude:
            yield _Scope(
                f"plan.groups[{number}]",
                plan.guards_of(rule),
                frozenset(rule.guards.model_fields_set),
                rule.options,
                plan.dry_run if rule.dry_run is None else rule.dry_run,
                sets_dry_run=rule.dry_run is not None,
                remedy="set exclude = true instead",
            )


def _by_guards(scope: _Scope, plan: PlanConfig) -> Iterator[str]:
    name, guards = f"{scope.name}.guards", scope.guards
    if "pin" in scope.set_here and _match_all(guards.pin):
        yield (
            f"{name}.pin: {_listed(guards.pin)} every topic, so every partition is pinned and no plan moves any; "
            f"{scope.remedy}"
        )
    if "min_improvement" in scope.set_here and guards.min_improvement >= _MUCH:
        yield (
            f"{name}.min_improvement: {guards.min_improvement:g} is more than a plan gains in a group of two members, "
            f"and than most gain elsewhere, so hardly any plan passes; set it below {_MUCH:g}"
        )
    needed_s = guards.confirmations * plan.interval_s
    if "confirmations" in scope.set_here and needed_s >= _DAY_S:
        yield (
            f"{name}.confirmations: {guards.confirmations} evaluations, one every {plan.interval_s} s "
            f"(plan.interval_s), take {needed_s / 3600:.0f} hours, in which the group must keep needing a plan and "
            "keep its members; lower it"
        )
    if "settle_s" in scope.set_here and guards.settle_s >= _DAY_S:
        yield (
            f"{name}.settle_s: {guards.settle_s} means that a group gets no plan until it has gone that long "
            "without a rebalance; lower it"
        )


def _by_options(scope: _Scope) -> Iterator[str]:
    name, options = f"{scope.name}.options", scope.options
    # Moves that balance counts ignore the budget.
    is_forced = options.get("counts") == "even" or options.get("count_cap") is not None
    if options.get("max_moves") == 0 and not is_forced:
        yield f"{name}.max_moves: 0 allows no move; set 1 or more, or exclude = true"
    least = options.get("min_gain")
    if least == 1:
        yield f"{name}.min_gain: 1 means that a plan must save all lag, which none does; set it below {_MUCH:g}"
    elif least is not None and least >= _MUCH:
        yield (
            f"{name}.min_gain: {least:g} is more of the lag than a plan saves in a group of two members, and than most "
            f"save elsewhere, so hardly any plan passes; set it below {_MUCH:g}"
        )
    for price in _PRICES:
        if options.get(price, 0) >= _LONG_S:
            yield (
                f"{name}.{price}: {options[price]:g} s is more than plans save, unless members are hours behind; "
                "lower it"
            )


def _listed(patterns: tuple[str, ...]) -> str:
    named = ", ".join(f'"{pattern}"' for pattern in patterns)
    return f"{named} matches" if len(patterns) == 1 else f"{named} match together"


@cache
def _match_all(patterns: tuple[str, ...]) -> bool:
    """Whether the patterns match every topic name, as far as trying names can tell.

    All short names and some long ones are tried. Look-around or a back-reference may exclude any other.
    """
    if not patterns or any(re.search(r"\(\?[^:)]|\\[1-9]", pattern) for pattern in patterns):
        return False
    admits = NameFilter(patterns).admits
    short = (first + second for first in _LETTERS for second in ("", *_LETTERS))
    long = (letter * length for letter in _LETTERS for length in (3, 17, _LONGEST))
    return all(map(admits, short)) and all(map(admits, long))
