"""The consumer protocol against Kafka's serializers, each way: what one writes the other reads, and the bytes are equal.

Subscription and assignment through `ConsumerProtocol`, user data through the assignors that own it.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assignor.protocol.kafka import sticky
from assignor.protocol.kafka.consumer import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tests.oracle.groups import SOME
from tests.oracle.kafka_assignors import KafkaAssignors
from tests.support.bytes_strategies import texts

# UTF-16, by which Java sorts, puts the second of these before the first.
_NOT_AS_PYTHON_SORTS = ("\ue000", "\U0001f600")

int32s = st.integers(-(2**31), 2**31 - 1)
generations = st.integers(-1, 2**31 - 1)
opaque = st.none() | st.binary(max_size=20)
some_partitions = st.lists(int32s, min_size=1, max_size=4)
by_topic = st.dictionaries(texts(), some_partitions.map(tuple), max_size=3)

subscriptions = st.builds(
    Subscription,
    topics=st.lists(texts(), max_size=3).map(tuple),
    user_data=opaque,
    owned=by_topic,
    generation=generations,
    rack=st.none() | texts().filter(bool),
)
assignments = st.builds(Assignment, partitions=by_topic, user_data=opaque)
claims = st.builds(sticky.Claims, owned=by_topic, generation=generations)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@SOME
@given(subscription=subscriptions)
@example(Subscription(topics=_NOT_AS_PYTHON_SORTS, owned=dict.fromkeys(_NOT_AS_PYTHON_SORTS, (1, 0))))
def test_subscription(kafka: KafkaAssignors, version: int, subscription: Subscription) -> None:
    ours = encode_subscription(subscription, version=version)

    kafkas = _encoded(kafka, "subscription", version, _hexed(asdict(subscription)))
    assert ours == kafkas
    assert _hexed(asdict(decode_subscription(kafkas))) == _decoded(kafka, "subscription", ours)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@SOME
@given(assignment=assignments)
def test_assignment(kafka: KafkaAssignors, version: int, assignment: Assignment) -> None:
    ours = encode_assignment(assignment, version=version)

    kafkas = _encoded(kafka, "assignment", version, _hexed(asdict(assignment)))
    assert ours == kafkas
    assert _hexed(asdict(decode_assignment(kafkas))) == _decoded(kafka, "assignment", ours)


@SOME
@given(claim=claims)
def test_user_data_of_sticky(kafka: KafkaAssignors, claim: sticky.Claims) -> None:
    ours = sticky.encode_sticky_user_data(claim)

    kafkas = _encoded(kafka, "sticky", 1, asdict(claim))
    # Kafka writes the topics in the order of a HashMap: the same claims, not always the same bytes.
    assert sticky.decode_sticky_user_data(kafkas) == claim
    assert len(ours) == len(kafkas)
    assert _decoded(kafka, "sticky", ours) == _hexed(asdict(claim))


@SOME
@given(claim=claims)
def test_user_data_of_sticky_without_a_generation(kafka: KafkaAssignors, claim: sticky.Claims) -> None:
    old = replace(claim, generation=-1)

    kafkas = _encoded(kafka, "sticky", 0, asdict(old))

    assert sticky.decode_sticky_user_data(kafkas) == old
    assert _decoded(kafka, "sticky", kafkas) == _hexed(asdict(old))


@SOME
@given(owned=by_topic, in_user_data=generations, in_protocol=generations)
def test_claims_of_cooperative_sticky(
    kafka: KafkaAssignors, owned: Mapping[str, tuple[int, ...]], in_user_data: int, in_protocol: int
) -> None:
    user_data = _encoded(kafka, "cooperative", 0, {"generation": in_user_data})
    sent = encode_subscription(
        Subscription(topics=(), user_data=user_data, owned=owned, generation=in_protocol)
    )

    ours = sticky.claims_of(sticky.COOPERATIVE_STICKY, decode_subscription(sent))

    assert _hexed(asdict(ours)) == _decoded(kafka, "cooperative", sent)


def _encoded(kafka: KafkaAssignors, what: str, version: int, value: Mapping[str, Any]) -> bytes:
    answer = kafka.ask({"do": "encode", "what": what, "version": version, "value": value})
    return bytes.fromhex(answer["hex"])


def _decoded(kafka: KafkaAssignors, what: str, data: bytes) -> Any:
    return kafka.ask({"do": "decode", "what": what, "hex": data.hex()})


def _hexed(value: Mapping[str, Any]) -> dict[str, Any]:
    """As the oracle writes it: bytes in hex, tuples as lists."""
    return {name: _plain(field) for name, field in value.items()}


def _plain(field: Any) -> Any:
    if isinstance(field, bytes):
        return field.hex()
    if isinstance(field, Mapping):
        return {topic: list(numbers) for topic, numbers in field.items()}
    return list(field) if isinstance(field, tuple) else field
