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
from tests.support.assignors.groups import owned_by


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
ENDLESS = {
    "topics": {
        "t0": 5,
        "t1": 2,
        "t2": 9,
        "t3": 13,
        "t4": 12,
        "t5": 10,
        "t6": 8,
        "t7": 11,
        "t8": 11,
        "t9": 7,
        "t10": 11,
        "t11": 10,
    },
    "members": {
        "m0": _member("t0", "t7", generation=1, t0=[1], t7=[3, 7]),
        "m2": _member("t8", "t2", "t3", "t0", generation=1, t2=[1, 6], t3=[2, 6], t8=[3, 5, 6]),
        "m3": _member("t0", "t3", generation=1, t0=[0], t3=[5, 8]),
        "m4": _member("t9", "t4", generation=1, t4=[0, 6, 10], t9=[4, 5]),
        "m5": _member(
            "t8", "t10", "t4", "t9", generation=1, t4=[1, 5, 11], t8=[2], t9=[1, 3, 6], t10=[0, 2, 7]
        ),
        "m6": _member("t11", "t8", generation=1, t11=[8]),
        "m7": _member("t6", generation=1, t6=[3, 7]),
        "m8": _member("t4", "t11", "t6", "t5", generation=1, t3=[4, 7, 9], t8=[1, 4, 9, 10], t10=[8, 9]),
        "m9": _member("t1", "t4", "t6", generation=1, t1=[0, 1], t4=[2, 7, 8], t6=[0, 6]),
        "m10": _member("t11", "t2", "t10", generation=1, t2=[3, 5, 7], t10=[5, 6], t11=[0, 2, 3, 6, 9]),
        "m11": _member("t9", "t8", "t7", "t0", generation=1, t0=[2, 3, 4], t7=[1, 6], t8=[7, 8]),
        "m12": _member("t6", "t8", "t10", "t7", generation=1, t6=[2], t7=[0, 2, 9, 10], t10=[1]),
        "m13": _member("t5", "t3", "t7", generation=1, t3=[0, 1, 3], t5=[4, 5, 9], t7=[4, 8]),
        "m14": _member("t6", "t9", generation=1, t6=[4], t9=[0, 2]),
        "m15": _member("t2", "t6", generation=1, t2=[0, 2, 4, 8], t6=[5]),
        "m16": _member("t6", "t10", generation=1, t6=[1], t10=[3, 4, 10]),
        "m17": _member("t7", "t11", generation=1, t7=[5], t11=[4, 5, 7]),
        "new": _member("t0", "t10", "t2"),
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
        pytest.param(ENDLESS, kafkas_target, "no end within", id="endless"),
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
