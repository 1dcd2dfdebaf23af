"""Where Kafka's sticky assignors are wrong, and ours are not: the least group for each mistake.

They say why the other tests of the family cannot ask for equality; one that falls after an update of Kafka tells
of a mistake that was mended.
"""

from collections.abc import Callable

import pytest

from assignor.cases.input import read_case
from assignor.evaluation.validity import check
from assignor.model.assignment import Assignment
from assignor.model.group import Group
from assignor.strategies.handover import next_step
from assignor.strategies.registry import strategy
from tests.oracle.judgement import InvalidResultError, kafkas_settled, kafkas_target, merit
from tests.oracle.kafka_assignors import Document, KafkaAssignors
from tests.support.groups import owned_by


def _member(*topics: str, generation: int = -1, rack: str | None = None, **owned: list[int]) -> Document:
    return {"topics": list(topics), "generation": generation, "rack": rack, "owned": owned}


PAST_THE_END = {"topics": {"t": 1}, "members": {"a": _member("t", t=[1])}}
PAST_THE_END_UNEQUAL = {
    "topics": {"t": 1, "u": 1},
    "members": {"a": _member("t", t=[5]), "b": _member("t", "u")},
}
NEGATIVE = {
    "topics": {"t": 3},
    "members": {"m6": _member("t", t=[2], generation=0), "m8": _member("t", "u", t=[-1], generation=0)},
}
WANTS_NOTHING = {"topics": {"t": 2}, "members": {"a": _member(), "b": _member("t")}}
NOT_SUBSCRIBED_ANY_MORE = {
    "topics": {"t": 5, "u": 1},
    "members": {
        "a": _member("u", t=[0, 1], generation=1),
        "b": _member("t", t=[0, 1, 2, 3, 4], generation=2),
        "c": _member("t", "u"),
    },
}
IN_THREE_RACKS = {
    "topics": {"a": 8, "b": 4, "d": 2},
    "members": {
        "m1": _member("b", rack="r1", generation=2),
        "m2": _member("a", "b", "d", rack="r2", generation=2, a=[0, 2], b=[0], d=[1]),
        "m3": _member("b", "d", rack="elsewhere", generation=2),
        "m4": _member("a", "b", "d", rack="r0", generation=0),
        "m5": _member("a", "d", generation=0),
    },
    "racks": {
        "a": [["r0", "r2"], ["r1"], ["r0", "r2"], ["r2"], ["r2"], ["r2"], ["r1"], ["r0"]],
        "b": [["r0", "r2"], ["r1"], ["r0", "r2"], ["r2"]],
        "d": [["r0", "r2"], ["r1"]],
    },
}
TWO_STEPS_FROM_EVEN = {
    "topics": {"t": 2, "u": 1},
    "members": {
        "a": _member("t", generation=1, t=[0, 1]),
        "b": _member("t", "u", generation=1, u=[0]),
        "c": _member("u"),
    },
}

OURS = pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])


@OURS
@pytest.mark.parametrize(
    ("document", "kafkas", "mistake"),
    [
        pytest.param(PAST_THE_END, kafkas_target, "No more unfilled consumers", id="claim past the end"),
        pytest.param(PAST_THE_END_UNEQUAL, kafkas_settled, "t-5 does not exist", id="the same, unequal"),
        pytest.param(NEGATIVE, kafkas_target, "is given twice", id="claim on a negative partition"),
        pytest.param(WANTS_NOTHING, kafkas_target, "does not subscribe", id="member without topics"),
        pytest.param(NOT_SUBSCRIBED_ANY_MORE, kafkas_target, "does not subscribe", id="former subscriber"),
        pytest.param(IN_THREE_RACKS, kafkas_settled, "not settled after 8 rebalances", id="racks"),
    ],
)
def test_kafkas_result_is_invalid_and_ours_is_not(
    kafka: KafkaAssignors,
    name: str,
    document: Document,
    kafkas: Callable[[KafkaAssignors, Group, Document], Assignment],
    mistake: str,
) -> None:
    group = read_case(document).group

    with pytest.raises(InvalidResultError, match=mistake):
        kafkas(kafka, group, document)

    target = strategy(name).assign(group, {})
    settled = owned_by(group, next_step(group, target))
    assert next_step(settled, target).member.tolist() == target.member.tolist()
    check(group, target)


@OURS
def test_kafka_leaves_a_member_idle_that_two_moves_would_feed(kafka: KafkaAssignors, name: str) -> None:
    group = read_case(TWO_STEPS_FROM_EVEN).group

    target = strategy(name).assign(group, {})

    assert merit(group, TWO_STEPS_FROM_EVEN, kafkas_target(kafka, group, TWO_STEPS_FROM_EVEN)).counts == (
        2,
        1,
        0,
    )
    assert merit(group, TWO_STEPS_FROM_EVEN, kafkas_settled(kafka, group, TWO_STEPS_FROM_EVEN)).counts == (
        2,
        1,
        0,
    )
    assert merit(group, TWO_STEPS_FROM_EVEN, target).counts == (1, 1, 1)
