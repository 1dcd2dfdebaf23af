"""The conformance kit without a broker: lines, exit statuses, plans that differ from what is held."""

from itertools import chain

import pytest

from tests.conformance import report
from tests.conformance.assignor import RULES as ASSIGNOR
from tests.conformance.hand_over import RULES as HAND_OVER
from tests.conformance.lines import MalformedLineError, parse
from tests.conformance.trial import Outcome, Rule, Verdict, rotations


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
