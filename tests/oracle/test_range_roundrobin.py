"""`range` and `roundrobin` give exactly what Kafka's classes give, static members and racks included."""

import pytest
from hypothesis import given

from assignor.cases.input import read_case
from assignor.cases.run import run_case
from assignor.evaluation.validity import check
from assignor.strategies.registry import strategy
from tests.oracle.groups import MANY, hostile
from tests.oracle.kafka_assignors import ByMember, Document, KafkaAssignors


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@MANY
@given(document=hostile())
def test_every_member_gets_the_same_partitions_as_from_kafka(
    kafka: KafkaAssignors, name: str, document: Document
) -> None:
    ours = run_case(document, strategy(name), clock=lambda: 0.0)

    assert _sorted(ours["assignment"]) == _sorted(kafka.assign(name, document))
    group = read_case(document).group
    check(group, strategy(name).assign(group, {}))


def _sorted(assigned: ByMember) -> ByMember:
    """Numbers in order; one that a member got twice is still there twice."""
    return {
        member: {topic: sorted(numbers) for topic, numbers in by_topic.items()}
        for member, by_topic in assigned.items()
    }
