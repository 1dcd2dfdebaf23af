"""The conformance kit names each deviation that a group in memory can show by the rule that it breaks."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from assignor.clients.confluent import reader
from assignor.clients.confluent.topics import FollowTopics
from assignor.clients.control import ControlState
from assignor.clients.follower import plan as follower_plan
from assignor.clients.follower import rules as follower_rules
from tests.conformance import hand_over, trial
from tests.conformance.followers import wrong
from tests.conformance.trial import Rule, Trial
from tests.support.conformance.conformance_memory import MemoryGroup
from tests.support.conformance.conformance_mutants import MUTANTS, Mutant

PAGE = Path(__file__).parents[2] / "deploy" / "docs" / "conformance.md"
_CHANGED: tuple[type | ModuleType, ...] = (ControlState, FollowTopics, follower_plan, follower_rules, reader)
IN_MEMORY = [mutant for mutant in MUTANTS if not mutant.needs_broker]


@pytest.fixture(autouse=True)
def whole_process_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (trial, hand_over):
        monkeypatch.setattr(module, "QUIET_S", 0.2)
    monkeypatch.setattr(trial, "APPLIED_WITHIN_S", 2.0)
    before = [(owner, dict(vars(owner))) for owner in _CHANGED]
    yield
    for owner, had in before:
        for name, value in had.items():
            if vars(owner)[name] is not value:
                setattr(owner, name, value)


def unkept(rules: list[Rule]) -> dict[str, str]:
    verdicts = Trial(MemoryGroup()).judge(rules)
    return {one.rule.sentence: one.why for one in verdicts if one.outcome != "pass"}


def test_correct_member_keeps_the_rules_that_find_deviations() -> None:
    sentences = {mutant.caught_by for mutant in IN_MEMORY}

    assert unkept([rule for rule in hand_over.RULES if rule.sentence in sentences or rule.is_basis]) == {}


@pytest.mark.parametrize("mutant", IN_MEMORY, ids=lambda mutant: mutant.title)
def test_deviation_is_named_by_the_rule_that_it_breaks_and_by_no_other(mutant: Mutant) -> None:
    for name in mutant.names:
        wrong.CHANGES[name]()

    assert set(unkept(mutant.rules())) == {mutant.caught_by}


def test_page_says_by_which_rule_each_deviation_is_caught() -> None:
    page = PAGE.read_text()

    for mutant in MUTANTS:
        assert f"| `{mutant.title}` | {mutant.caught_by} |" in page
