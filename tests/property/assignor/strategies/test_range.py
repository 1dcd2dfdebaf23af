"""Range, racks included, and roundrobin against Kafka's rules, one partition at a time."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.model.members import build_group
from assignor.strategies import roundrobin
from assignor.strategies.range import strategy as range_assignor
from tests.support.assignors import literal_range
from tests.support.assignors.groups import Description, descriptions
from tests.support.assignors.literal_rules import partitions_of

RACKS = ("a", "b", "c")


@settings(max_examples=200)
@given(
    description=descriptions(),
    member_racks=st.lists(st.sampled_from((*RACKS, "", "elsewhere")), min_size=6, max_size=6),
    replicas=st.binary(min_size=28, max_size=28),
)
def test_range_equals_kafkas_rule_partition_by_partition(
    description: Description, member_racks: list[str], replicas: bytes
) -> None:
    plain = description.build()
    of_partition = [
        [r for i, r in enumerate(RACKS) if byte >> i & 1] for byte in replicas[: plain.n_partitions]
    ]
    members = [replace(m, rack=r) for m, r in zip(description.members, member_racks, strict=False)]
    group = build_group(topics=plain.topics, members=members, replica_racks=of_partition)

    assignment = range_assignor.assign(group)

    validity.check(group, assignment, even="topic")
    of_topic = {
        name: [of_partition[partition] for partition in partitions_of(group, t)]
        for t, name in enumerate(group.topics.names)
    }
    racks = {m.member_id: m.rack or "" for m in members}
    assert assignment.member.tolist() == literal_range.range_assignor(group, racks, of_topic)


@given(description=descriptions())
def test_roundrobin_equals_kafkas_rule_partition_by_partition(description: Description) -> None:
    group = description.build()

    assignment = roundrobin.assign(group)

    validity.check(group, assignment)
    assert assignment.member.tolist() == literal_range.roundrobin(group)


@given(description=descriptions(equal=True))
def test_roundrobin_counts_differ_by_one_when_subscriptions_are_equal(description: Description) -> None:
    group = description.build()

    validity.check(group, roundrobin.assign(group), even="group")
