"""Kafka's named scenarios for range and roundrobin (RangeAssignorTest, RoundRobinAssignorTest)."""

from dataclasses import replace

import pytest

from assignor.errors import InvalidGroupError
from assignor.evaluation import validity
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from assignor.strategies import roundrobin
from assignor.strategies.range import strategy as range_assignor
from tests.support.assignors.groups import by_name, group, member


def ranged(built: Group) -> dict[str, list[str]]:
    target = range_assignor.assign(built)
    validity.check(built, target, even="topic")
    return by_name(built, target)


def with_racks(
    partitions: dict[str, int], replicas: dict[str, list[str]], *members: tuple[str, str | None]
) -> Group:
    """Everybody reads everything; replica racks as words like "ab"; members as (id, rack)."""
    topics = Topics.of(partitions)
    return build_group(
        topics=topics,
        members=[Member(member_id=name, topics=topics.names, rack=rack) for name, rack in members],
        replica_racks=[list(racks) for name in topics.names for racks in replicas[name]],
    )


def test_first_members_get_one_partition_more_of_every_topic() -> None:
    built = group({"t1": 3, "t2": 3}, member("c1", "t1", "t2"), member("c2", "t1", "t2"))

    assert ranged(built) == {"c1": ["t1-0", "t1-1", "t2-0", "t2-1"], "c2": ["t1-2", "t2-2"]}


def test_only_subscribers_share_a_topic() -> None:
    built = group({"t1": 3, "t2": 2}, member("c1", "t1"), member("c2", "t1", "t2"), member("c3", "t1"))

    assert ranged(built) == {"c1": ["t1-0"], "c2": ["t1-1", "t2-0", "t2-1"], "c3": ["t1-2"]}


def test_more_members_than_partitions_leave_the_last_with_none() -> None:
    built = group({"t": 1}, member("a", "t"), member("b", "t"))

    assert ranged(built) == {"a": ["t-0"], "b": []}


def test_static_members_keep_their_ranges_when_member_ids_change() -> None:
    before = group({"t": 3}, member("x", "t", instance_id="1"), member("a", "t", instance_id="2"))
    after = group({"t": 3}, member("b", "t", instance_id="1"), member("y", "t", instance_id="2"))

    assert list(ranged(before).values()) == list(ranged(after).values())


def test_lone_topic_is_read_from_the_own_rack() -> None:
    built = with_racks({"t": 4}, {"t": ["b", "a", "b", "a"]}, ("m1", "a"), ("m2", "b"))

    assert ranged(built) == {"m1": ["t-1", "t-3"], "m2": ["t-0", "t-2"]}


def test_topics_that_go_together_agree_by_number_before_racks() -> None:
    replicas = {"t": ["a", "b"], "u": ["b", "b"]}

    built = with_racks({"t": 2, "u": 2}, replicas, ("m1", "a"), ("m2", "b"))

    assert ranged(built) == {"m1": ["t-0", "u-0"], "m2": ["t-1", "u-1"]}


def test_own_rack_wins_over_order_where_topics_agree_on_it() -> None:
    replicas = {"t": ["b", "a"], "u": ["b", "a"]}

    built = with_racks({"t": 2, "u": 2}, replicas, ("m1", "a"), ("m2", "b"))

    assert ranged(built) == {"m1": ["t-1", "u-1"], "m2": ["t-0", "u-0"]}


@pytest.mark.parametrize(
    ("replicas", "racks"),
    [
        (["ab", "ab"], ("a", "b")),
        (["b", "a"], ("c", "c")),
        (["b", "a"], (None, None)),
        (["b", "a"], ("", "")),
        (["", ""], ("a", "b")),
    ],
    ids=["every rack has all", "members elsewhere", "members without", "empty names", "replicas without"],
)
def test_racks_that_make_no_difference_leave_the_plain_ranges(
    replicas: list[str], racks: tuple[str | None, str | None]
) -> None:
    built = with_racks({"t": 2}, {"t": replicas}, ("m1", racks[0]), ("m2", racks[1]))

    assert ranged(built) == {"m1": ["t-0"], "m2": ["t-1"]}


def test_shares_stay_equal_when_one_rack_has_every_replica() -> None:
    built = with_racks({"t": 5}, {"t": ["a"] * 4 + ["b"]}, ("m1", "b"), ("m2", "a"))

    assert ranged(built) == {"m1": ["t-3", "t-4"], "m2": ["t-0", "t-1", "t-2"]}


def test_member_elsewhere_is_not_passed_over_where_every_rack_has_every_partition() -> None:
    built = with_racks({"t": 2}, {"t": ["ab", "ab"]}, ("m1", "elsewhere"), ("m2", "a"))

    assert ranged(built) == {"m1": ["t-0"], "m2": ["t-1"]}


def test_member_without_rack_is_not_preferred_when_no_topic_needs_racks() -> None:
    replicas = {"t": ["a", "b"], "u": ["a", "b"]}

    built = with_racks({"t": 2, "u": 2}, replicas, ("m1", "elsewhere"), ("m2", None))

    assert ranged(built) == {"m1": ["t-0", "u-0"], "m2": ["t-1", "u-1"]}


def test_topic_that_needs_no_racks_is_ranged_beside_one_that_does() -> None:
    replicas = {"t": ["z", "z"], "u": ["b", "b", "a"]}

    built = with_racks({"t": 2, "u": 3}, replicas, ("m1", "a"), ("m2", None))

    assert ranged(built) == {"m1": ["t-0", "u-2"], "m2": ["t-1", "u-0", "u-1"]}


def test_extra_partition_is_given_once_when_topics_go_together() -> None:
    replicas = {"t": ["a", "a", "b", "b"], "u": ["a", "a", "b", "b"]}

    built = with_racks({"t": 4, "u": 4}, replicas, ("m1", "a"), ("m2", "b"), ("m3", "c"))

    assert ranged(built) == {"m1": ["t-0", "t-1", "u-0", "u-1"], "m2": ["t-2", "u-2"], "m3": ["t-3", "u-3"]}


def test_topics_that_nobody_reads_do_not_disturb_the_rack_pass() -> None:
    topics = Topics.of({"t": 2, "u": 1, "v": 1})
    members = [Member(member_id=m, topics=("t",), rack=r) for m, r in (("m1", "a"), ("m2", "b"))]

    built = build_group(topics=topics, members=members, replica_racks=["b", "a", "a", "a"])

    assert ranged(built) == {"m1": ["t-1"], "m2": ["t-0"]}


def test_group_whose_members_have_no_rack_has_no_racks() -> None:
    assert with_racks({"t": 1}, {"t": ["a"]}, ("m1", None), ("m2", "")).racks is None


def test_own_rack_is_found_behind_many_partitions_that_others_took() -> None:
    replicas = {"t": ["ab"] * 8 + ["b", "b", "a", "a"]}
    in_b = [(f"m{i}", "b") for i in range(4)]

    built = with_racks({"t": 12}, replicas, *in_b, ("n0", "a"), ("n1", None))

    assert ranged(built)["n0"] == ["t-10", "t-11"]


def test_racks_of_other_partitions_are_refused() -> None:
    built = with_racks({"t": 2}, {"t": ["a", "b"]}, ("m1", "a"))

    with pytest.raises(InvalidGroupError, match="racks"):
        build_group(
            topics=built.topics, members=[Member(member_id="m", topics=(), rack="a")], replica_racks=[]
        )
    with pytest.raises(InvalidGroupError, match="racks"):
        replace(group({"t": 1}, member("m", "t")), racks=built.racks)


def test_roundrobin_goes_on_from_topic_to_topic() -> None:
    built = group({"t1": 3, "t2": 3}, member("c1", "t1", "t2"), member("c2", "t1", "t2"))

    target = roundrobin.assign(built)

    validity.check(built, target, even="group")
    assert by_name(built, target) == {"c1": ["t1-0", "t1-2", "t2-1"], "c2": ["t1-1", "t2-0", "t2-2"]}


def test_roundrobin_passes_over_members_that_do_not_subscribe() -> None:
    built = group({"t1": 3, "t2": 2}, member("c1", "t1"), member("c2", "t1", "t2"), member("c3", "t1"))

    target = roundrobin.assign(built)

    validity.check(built, target)
    assert by_name(built, target) == {"c1": ["t1-0"], "c2": ["t1-1", "t2-0", "t2-1"], "c3": ["t1-2"]}
