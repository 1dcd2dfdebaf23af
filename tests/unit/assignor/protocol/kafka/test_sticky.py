import pytest

from assignor.errors import DecodeError
from assignor.protocol.kafka.consumer import Subscription
from assignor.protocol.kafka.sticky import Claims, claims_of, decode_sticky_user_data, encode_sticky_user_data
from tests.golden import consumer as golden

IN_USER_DATA = {"t": (0, 2), "u": (1,)}
IN_FIELDS = {"t": (5,)}
NOTHING = Claims(owned={}, generation=-1)


def member(user_data: bytes | None, generation: int = -1) -> Subscription:
    return Subscription(topics=("t", "u"), user_data=user_data, owned=IN_FIELDS, generation=generation)


@pytest.mark.parametrize(
    ("data", "generation"),
    [
        pytest.param(golden.STICKY_V1, 7, id="v1"),
        pytest.param(golden.STICKY_V0, -1, id="v0"),
        pytest.param(golden.STICKY_V1_KAFKA_PYTHON, 7, id="kafka-python v1"),
        pytest.param(b"\x00\x00" + golden.STICKY_V0, -1, id="kafka-python v0"),
    ],
)
def test_golden_user_data_is_decoded(data: bytes, generation: int) -> None:
    assert decode_sticky_user_data(data) == Claims(owned=IN_USER_DATA, generation=generation)


@pytest.mark.parametrize("generation", [-1, 0, 7, 2**31 - 1])
def test_leader_of_version_0_reads_the_claims_of_version_1_and_may_ignore_what_follows(
    generation: int,
) -> None:
    written = encode_sticky_user_data(Claims(owned=IN_USER_DATA, generation=generation))

    assert written == golden.STICKY_V0 + generation.to_bytes(4, "big", signed=True)


def test_user_data_is_encoded_to_the_golden_bytes() -> None:
    assert encode_sticky_user_data(Claims(owned=IN_USER_DATA, generation=7)) == golden.STICKY_V1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(golden.STICKY_V1 + b"\x00", "1 trailing bytes", id="trailing byte"),
        pytest.param(golden.STICKY_V1[:-1], "generation: 4 bytes needed, 3 left", id="truncated"),
        pytest.param(b"\x00\x02" + golden.STICKY_V1, "partitions by topic: 131072 items", id="version 2"),
        pytest.param(b"{json}", "partitions by topic: 2070573935 items", id="something else"),
    ],
)
def test_bad_user_data_is_told_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_sticky_user_data(data)


def test_sticky_goes_by_user_data_alone() -> None:
    claims = claims_of("sticky", member(golden.STICKY_V1, generation=9))

    assert claims == Claims(owned=IN_USER_DATA, generation=7)


@pytest.mark.parametrize("user_data", [None, b"", b"garbage", golden.STICKY_V1[:-2]])
def test_sticky_without_readable_user_data_claims_nothing(user_data: bytes | None) -> None:
    assert claims_of("sticky", member(user_data, generation=9)) == NOTHING


def test_negative_partition_in_user_data_is_a_claim_like_any_other() -> None:
    hostile = Claims(owned={"t": (-1, 2**31 - 1)}, generation=3)

    assert claims_of("sticky", member(encode_sticky_user_data(hostile))) == hostile


@pytest.mark.parametrize(
    ("user_data", "protocol_generation", "generation"),
    [
        pytest.param(b"\x00\x00\x00\x05", 9, 9, id="protocol goes first"),
        pytest.param(b"\x00\x00\x00\x05", -1, 5, id="user data otherwise"),
        pytest.param(b"\xff\xff\xff\xff", -1, -1, id="never assigned"),
        pytest.param(b"\x80\x00\x00\x00", -1, -1, id="below -1"),
        pytest.param(golden.STICKY_V1, -1, 7, id="layout of librdkafka"),
        pytest.param(None, -1, -1, id="none"),
        pytest.param(b"\x01", -1, -1, id="garbage"),
    ],
)
def test_cooperative_sticky_takes_partitions_from_the_protocol(
    user_data: bytes | None, protocol_generation: int, generation: int
) -> None:
    claims = claims_of("cooperative-sticky", member(user_data, protocol_generation))

    assert claims == Claims(owned=IN_FIELDS, generation=generation)


@pytest.mark.parametrize("protocol", ["range", "some-custom-assignor", None])
def test_any_other_assignor_goes_by_the_protocol(protocol: str | None) -> None:
    claims = claims_of(protocol, member(golden.STICKY_V1, generation=9))

    assert claims == Claims(owned=IN_FIELDS, generation=9)
