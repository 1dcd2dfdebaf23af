"""The conformance kit without a broker: lines, exit statuses, plans that differ from what is held."""

import time
from itertools import chain

import pytest

from tests.conformance import report
from tests.conformance.assignor import RULES as ASSIGNOR
from tests.conformance.hand_over import RULES as HAND_OVER
from tests.conformance.lines import MalformedLineError, parse
from tests.conformance.trial import MEMBERS, MOST_REPLACED, Outcome, Rule, Trial, Verdict, rotations
from tests.support.conformance.conformance_memory import MemoryGroup


def test_every_form_of_a_line_is_read() -> None:
    assert parse("m1 joined 3 m1-50381e11 0,1") == {
        "who": "m1",
        "what": "joined",
        "generation": 3,
        "member": "m1-50381e11",
        "places": [0, 1],
    }
    assert parse("m1 gained 3 -") == {"who": "m1", "what": "gained", "generation": 3, "places": []}
    assert parse("m1 lost 2") == {"who": "m1", "what": "lost", "places": [2]}
    assert parse("m1 record 0 17") == {"who": "m1", "what": "record", "place": 0, "offset": 17}
    assert parse("m1 stopped") == {"who": "m1", "what": "stopped"}


@pytest.mark.parametrize(
    "text", ["", "m1", "m1 record 0", "m1 gained x 0", "m1 revoked 0,,1", "m1 record 0 -1"]
)
def test_anything_else_is_no_line(text: str) -> None:
    with pytest.raises(MalformedLineError):
        parse(text)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        (("pass", "pass"), 0),
        (("pass", "fail", "not judged"), 1),
        (("pass", "not judged"), 2),
        ((), 2),
    ],
)
def test_exit_status_is_that_of_the_worst_that_is_certain(outcomes: tuple[Outcome, ...], status: int) -> None:
    rule = Rule(number="1", sentence="A rule.", check=lambda _: None)

    assert report.exit_status([Verdict(rule=rule, outcome=outcome) for outcome in outcomes]) == status


def test_every_rotation_gives_every_partition_another_owner() -> None:
    base = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}

    for target in rotations(base):
        assert sorted(chain.from_iterable(target.values())) == list(range(6))
        assert all(not set(base[name]) & set(target[name]) for name in base)


@pytest.mark.parametrize("rules", [HAND_OVER, ASSIGNOR])
def test_rules_have_sentences_of_their_own(rules: tuple[Rule, ...]) -> None:
    sentences = [rule.sentence for rule in rules]

    assert len(sentences) == len(set(sentences))
    assert rules[-1].is_last


def _dies(trial: Trial) -> None:
    group = trial.group
    assert isinstance(group, MemoryGroup)
    draft = trial.draft()
    group.die(group.alive()[0])
    trial.apply(draft)


_LETS_ONE_DIE = Rule(number="1", sentence="One dies.", check=_dies)
_APPLIES = Rule(number="2", sentence="All apply.", check=lambda trial: trial.apply() and None)
_LOOKS_BACK = Rule(number="3", sentence="In the end.", check=lambda _: None, is_last=True)


def test_rule_in_which_a_member_dies_fails_at_once_and_the_next_one_has_a_whole_group() -> None:
    since_s = time.monotonic()

    one, other, last = Trial(MemoryGroup()).judge([_LETS_ONE_DIE, _APPLIES, _LOOKS_BACK])

    assert (one.outcome, other.outcome, last.outcome) == ("fail", "pass", "pass")
    assert "m1 has ended: no more of m1" in one.why
    # Of the 20 s in which a plan may be applied, and the 40 s in which a group may form, none are waited for.
    assert time.monotonic() - since_s < 10.0


def test_of_a_group_whose_members_go_on_dying_only_what_can_be_seen_in_the_end_is_judged() -> None:
    rules = [_LETS_ONE_DIE] * (MOST_REPLACED + 1)

    *verdicts, cut, left, last = Trial(MemoryGroup()).judge([*rules, _APPLIES, _APPLIES, _LOOKS_BACK])

    assert {verdict.outcome for verdict in verdicts} == {"fail"}
    assert (cut.outcome, left.outcome, last.outcome) == ("not judged", "not judged", "pass")
    assert f"{MOST_REPLACED + 1} members have ended" in cut.why


def test_group_begins_with_epochs_of_this_time() -> None:
    trial = Trial(MemoryGroup())
    trial.start(MEMBERS)

    assert abs(trial.draft().epoch - time.time()) < 60
