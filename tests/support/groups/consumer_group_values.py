"""Hypothesis strategies for the values of KIP-848 records."""

from hypothesis import strategies as st

from assignor.protocol.kafka.consumer_group import (
    ClassicMember,
    CurrentAssignment,
    MemberMetadata,
    RegularExpression,
)
from tests.support.bytes_strategies import texts

int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
names = st.lists(texts(), max_size=3).map(tuple)
assignments = st.lists(
    st.tuples(
        st.binary(min_size=16, max_size=16),
        st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple),
    ),
    max_size=3,
).map(tuple)
# A member has a protocol. Kafka's serde writes no ClassicMemberMetadata that equals its default: no time, no protocol.
classic_members = st.builds(
    ClassicMember,
    session_timeout_ms=int32s,
    protocols=st.lists(st.tuples(texts(), st.binary(max_size=200)), min_size=1, max_size=2).map(tuple),
)
member_metadata = st.builds(
    MemberMetadata,
    instance_id=st.none() | texts(),
    rack_id=st.none() | texts(),
    client_id=texts(200),
    client_host=texts(),
    topic_names=names,
    topic_regex=st.none() | texts(),
    rebalance_timeout_ms=int32s,
    server_assignor=st.none() | texts(),
    classic=st.none() | classic_members,
)
current_assignments = st.builds(
    CurrentAssignment,
    member_epoch=int32s,
    previous_member_epoch=int32s,
    state=st.integers(-128, 127),
    assigned=assignments,
    pending_revocation=assignments,
)
regular_expressions = st.builds(RegularExpression, topics=names, version=int64s, timestamp_ms=int64s)
