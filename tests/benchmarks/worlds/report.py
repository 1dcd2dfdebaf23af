"""The tables of the worlds."""

import statistics
from collections.abc import Mapping
from typing import Any


def line(name: str, world: Mapping[str, Any], *, seconds: float) -> str:
    """A world in a line, while the others run."""
    goals = ", ".join(
        f"{what} {goal['is']:g} ({'met' if goal['met'] else 'missed'})"
        for what, goal in world["goals"].items()
    )
    why = "; ".join(f"{share:.0%} {reason}" for reason, share in list(world["why"].items())[:4])
    return f"{name}: {goals}; {seconds:.0f} s since the beginning\n         {why}"


def tables(
    worlds: Mapping[str, Any], goals: Mapping[str, Any], before: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Goals, figures by policy, and the reasons of lagwise's decisions."""
    return [_goals(worlds, before), _overall(goals), _figures(worlds), _why(worlds)]


def _goals(worlds: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for world in worlds.values() for name in world["goals"]))
    header = ["lagwise in a closed loop, lag area", *names, "median over before", "moves, now and before"]
    rows = [
        [
            name,
            *(_goal(world["goals"].get(one)) for one in names),
            *_against(world["seeds"], before.get(name)),
        ]
        for name, world in worlds.items()
    ]
    return {"header": header, "rows": rows}


def _overall(goals: Mapping[str, Any]) -> dict[str, Any]:
    return {"header": ["all worlds", ""], "rows": [[name, _goal(goal)] for name, goal in goals.items()]}


def _goal(goal: Mapping[str, Any] | None) -> str:
    if goal is None:
        return ""
    return f"{goal['is']:,.4g} {'met' if goal['met'] else 'missed'} (≤ {goal['goal']:g})"


def _against(now: Mapping[str, list[float]], before: Mapping[str, list[float]] | None) -> tuple[str, str]:
    if before is None:
        return "", ""
    pairs = list(zip(now["lag_area"], before["lag_area"], strict=False))
    moves = list(zip(now["moves"], before["moves"], strict=False))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    return f"{ratio:.3f}", f"{sum(ours for ours, _ in moves):g} for {sum(theirs for _, theirs in moves):g}"


def _figures(worlds: Mapping[str, Any]) -> dict[str, Any]:
    header = [
        "world: least / median / most of the seeds",
        "policy",
        "lag area, mega record-s",
        "over oracle",
        "over no plans",
        "late partition-h",
        "moves",
        "straight back",
        "plans",
    ]
    rows = [
        [
            name,
            policy,
            _three(of["lag_area"], 1e-6),
            _three(of["over_oracle"]),
            _three(of["over_no_plans"]),
            _three(of["late_h"]),
            *(_three(of[figure]) for figure in ("moves", "moves_back", "plans")),
        ]
        for name, world in worlds.items()
        for policy, of in world["policies"].items()
    ]
    return {"header": header, "rows": rows}


def _three(spread: Mapping[str, float], scale: float = 1.0) -> str:
    return " / ".join(f"{_short(spread[key] * scale)}" for key in ("min", "median", "max"))


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _why(worlds: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        [name, f"{share:.1%}", reason]
        for name, world in worlds.items()
        for reason, share in world["why"].items()
    ]
    return {"header": ["lagwise's decisions", "of the evaluations", "decision and reason"], "rows": rows}
