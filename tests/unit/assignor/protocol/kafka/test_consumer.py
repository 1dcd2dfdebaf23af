import pytest

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tests.golden import consumer as golden

TOPICS, USER_DATA, OWNED = ("t1", "t2"), b"\x00\x00\x00\x07", {"t1": (0, 1)}
ALL_VERSIONS = [
    pytest.param(golden.SUBSCRIPTION_V0, 0, Subscription(topics=TOPICS, user_data=USER_DATA), id="v0"),
    pytest.param(
        golden.SUBSCRIPTION_V1, 1, Subscription(topics=TOPICS, user_data=USER_DATA, owned=OWNED), id="v1"
    ),
    pytest.param(
        golden.SUBSCRIPTION_V2,
        2,
        Subscription(topics=TOPICS, user_data=USER_DATA, owned=OWNED, generation=7),
        id="v2",
    ),
    pytest.param(
        golden.SUBSCRIPTION_V3,
        3,
        Subscription(topics=TOPICS, user_data=USER_DATA, owned=OWNED, generation=7, rack="ra"),
        id="v3",
    ),
]


@pytest.mark.parametrize(("data", "version", "subscription"), ALL_VERSIONS)
def test_golden_subscription_is_decoded_and_encoded(
    data: bytes, version: int, subscription: Subscription
) -> None:
    assert decode_subscription(data) == subscription
    assert encode_subscription(subscription, version=version) == data


def test_topics_and_owned_partitions_are_written_sorted() -> None:
    shuffled = Subscription(
        topics=("t2", "t1"), user_data=USER_DATA, owned={"t1": (1, 0)}, generation=7, rack="ra"
    )

    assert encode_subscription(shuffled) == golden.SUBSCRIPTION_V3


def test_future_version_is_read_as_the_newest_and_its_tail_ignored() -> None:
    future = b"\x00\x64" + golden.SUBSCRIPTION_V3[2:] + b"more"

    assert decode_subscription(future) == decode_subscription(golden.SUBSCRIPTION_V3)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_body_of_an_older_version_is_taken_for_what_it_is(version: int) -> None:
    understated = version.to_bytes(2, "big") + golden.SUBSCRIPTION_V0[2:]

    assert decode_subscription(understated) == Subscription(topics=TOPICS, user_data=USER_DATA)


def test_empty_rack_and_negative_generation_are_none() -> None:
    data = golden.SUBSCRIPTION_V1.replace(b"\x00\x01", b"\x00\x03", 1) + b"\x80\x00\x00\x00" + b"\x00\x00"

    subscription = decode_subscription(data)

    assert (subscription.generation, subscription.rack) == (-1, None)


def test_user_data_may_be_null() -> None:
    assert decode_subscription(bytes.fromhex("0000 00000000 ffffffff")) == Subscription(topics=())


def test_hostile_partitions_are_kept_for_the_assignor_to_judge() -> None:
    owned = {"ghost": (-1, 2**31 - 1, -(2**31))}
    claimed = Subscription(topics=("t",), owned=owned, generation=1)

    assert sorted(decode_subscription(encode_subscription(claimed)).owned["ghost"]) == sorted(owned["ghost"])


def test_topic_that_is_named_twice_is_joined() -> None:
    data = bytes.fromhex("0000 00000002 0001 74 00000001 00000003 0001 74 00000001 00000001 ffffffff")

    assert decode_assignment(data) == Assignment(partitions={"t": (3, 1)})


def test_golden_assignment_keeps_its_order() -> None:
    assignment = decode_assignment(golden.ASSIGNMENT_V3)

    assert list(assignment.partitions.items()) == [("t1", (1, 0)), ("b", (3,))]
    assert encode_assignment(assignment) == golden.ASSIGNMENT_V3


def test_no_bytes_are_an_assignment_of_nothing() -> None:
    assert decode_assignment(b"") == Assignment(partitions={})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "version: 2 bytes needed, 0 left", id="empty"),
        pytest.param(b"\xff\xff\x00\x00", "negative version -1", id="negative version"),
        pytest.param(
            b"\x00\x00\x7f\xff\xff\xff", "topics: 2147483647 items cannot fit into 0 bytes", id="huge count"
        ),
        pytest.param(b"\x00\x00\xff\xff\xff\xff", "topics: null", id="null topics"),
        pytest.param(golden.SUBSCRIPTION_V3[:-1], "rack: 2 bytes needed, 1 left", id="truncated rack"),
        pytest.param(golden.SUBSCRIPTION_V1[:-1], "partitions: 8 bytes needed, 7 left", id="truncated owned"),
    ],
)
def test_bad_subscription_is_told_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_subscription(data)

    assert caught.value.reason == reason


def test_huge_partition_count_is_refused_before_anything_is_allocated() -> None:
    data = bytes.fromhex("0000 00000001 0001 74 7fffffff")

    with pytest.raises(DecodeError, match="8589934588 bytes needed, 0 left"):
        decode_assignment(data)
