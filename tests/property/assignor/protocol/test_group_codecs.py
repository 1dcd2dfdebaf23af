"""Group metadata, consumer protocol, sticky user data: round trips."""

from hypothesis import given
from hypothesis import strategies as st

from assignor.model.java_order import java_order
from assignor.protocol.kafka.consumer import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from assignor.protocol.kafka.group_metadata import (
    GroupMember,
    GroupMetadata,
    decode_group_metadata,
    encode_group_metadata,
)
from assignor.protocol.kafka.sticky import Claims, decode_sticky_user_data, encode_sticky_user_data
from tests.support.bytes_strategies import texts

int32s = st.integers(-(2**31), 2**31 - 1)
generations = st.integers(-1, 2**31 - 1)
opaque = st.binary(max_size=20)
topic_partitions = st.dictionaries(texts(), st.lists(int32s, max_size=4).map(tuple), max_size=3)

members = st.builds(
    GroupMember,
    member_id=texts(),
    group_instance_id=st.none() | texts(),
    client_id=texts(),
    client_host=texts(),
    rebalance_timeout_ms=int32s,
    session_timeout_ms=int32s,
    subscription=opaque,
    assignment=opaque,
)
groups = st.builds(
    GroupMetadata,
    protocol_type=texts(),
    generation=int32s,
    protocol=st.none() | texts(),
    leader=st.none() | texts(),
    state_timestamp_ms=st.integers(-(2**63), 2**63 - 1),
    members=st.lists(members, max_size=3).map(tuple),
)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(texts(), max_size=3).map(lambda topics: tuple(sorted(topics, key=java_order))),
    user_data=st.none() | opaque,
    owned=st.dictionaries(texts(), st.lists(int32s, max_size=4).map(lambda p: tuple(sorted(p))), max_size=3),
    generation=generations,
    rack=st.none() | texts().filter(bool),
)
assignments = st.builds(Assignment, partitions=topic_partitions, user_data=st.none() | opaque)
claims = st.builds(Claims, owned=topic_partitions, generation=generations)


@given(groups, st.sampled_from([3, 4]))
def test_group_survives_a_round_trip(group: GroupMetadata, version: int) -> None:
    assert decode_group_metadata(encode_group_metadata(group, version=version)) == group


@given(subscriptions)
def test_subscription_survives_a_round_trip(subscription: Subscription) -> None:
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(assignments)
def test_assignment_survives_a_round_trip(assignment: Assignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment


@given(claims)
def test_claims_survive_a_round_trip(claim: Claims) -> None:
    assert decode_sticky_user_data(encode_sticky_user_data(claim)) == claim


@given(claims, st.sampled_from([b"\x00\x00", b"\x00\x01"]))
def test_version_in_front_of_claims_changes_nothing(claim: Claims, version: bytes) -> None:
    assert decode_sticky_user_data(version + encode_sticky_user_data(claim)) == claim
