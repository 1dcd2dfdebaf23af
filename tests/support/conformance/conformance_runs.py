"""Followers under the conformance kit, as tests judge them."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.trial import Rule, Verdict, judge


def python_follower(*words: str) -> list[str]:
    """The command of one of `tests.conformance.followers`, with its arguments."""
    return [sys.executable, "-m", f"tests.conformance.followers.{words[0]}", *words[1:]]


def unkept(bootstrap: str, folder: Path, command: Sequence[str], rules: Sequence[Rule]) -> dict[str, str]:
    """Why each rule is broken, or not judged, by its sentence; nothing for a follower that keeps them all."""
    folder.mkdir(exist_ok=True)
    verdicts: list[Verdict] = list(judge(bootstrap, folder, command, rules))
    assert len(verdicts) == len(rules)
    return {verdict.rule.sentence: verdict.why for verdict in verdicts if verdict.outcome != "pass"}


def only(rules: Sequence[Rule], *parts: str) -> list[Rule]:
    """The rules that a follower is to show first, and those whose sentences have one of these parts."""
    return [rule for rule in rules if rule.is_basis or any(part in rule.sentence for part in parts)]


def quick(rules: Sequence[Rule]) -> list[Rule]:
    """As `--quick` has it."""
    return [rule for rule in rules if not rule.is_slow]
