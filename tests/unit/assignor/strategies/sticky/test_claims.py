"""From the bytes of members' subscriptions to a target: KIP-341, and Kafka's tests of members of several versions."""

import pytest

from assignor.evaluation import validity
from assignor.model.members import Member
from assignor.protocol.kafka.consumer import Subscription, decode_subscription, encode_subscription
from assignor.protocol.kafka.sticky import Claims, claims_of, encode_sticky_user_data
from assignor.strategies.registry import strategy
from tests.support.assignors.groups import by_name, group

Partitions = dict[str, tuple[int, ...]]


def v1(owned: Partitions, generation: int) -> bytes:
    return encode_sticky_user_data(Claims(owned=owned, generation=generation))


def v0(owned: Partitions) -> bytes:
    return v1(owned, 0)[:-4]


def sent(
    version: int, user_data: bytes | None, owned: Partitions | None = None, generation: int = -1
) -> bytes:
    subscription = Subscription(topics=("t",), user_data=user_data, owned=owned or {}, generation=generation)
    return encode_subscription(subscription, version=version)


def received(name: str, member_id: str, metadata: bytes) -> Member:
    subscription = decode_subscription(metadata)
    claims = claims_of(name, subscription)
    return Member(
        member_id=member_id,
        topics=subscription.topics,
        owned=claims.owned,
        generation=claims.generation,
    )


STICKY: dict[str, tuple[dict[str, bytes], dict[str, list[str]]]] = {
    "user data v0 is honoured": (
        {"a": sent(0, v0({"t": (1, 2)})), "b": sent(0, v0({"t": (0,)}))},
        {"a": ["t-1", "t-2"], "b": ["t-0"]},
    ),
    "v1 wins over v0": (
        {"a": sent(0, v0({"t": (0, 1)})), "b": sent(1, v1({"t": (1, 2)}, 4))},
        {"a": ["t-0"], "b": ["t-1", "t-2"]},
    ),
    "versions 0, 1 and 3 of the protocol in one group": (
        {"a": sent(0, v0({"t": (2,)})), "b": sent(1, v1({"t": (1,)}, 4)), "c": sent(3, v1({"t": (0,)}, 4))},
        {"a": ["t-2"], "b": ["t-1"], "c": ["t-0"]},
    ),
    "user data goes before the fields of the protocol": (
        {
            "a": sent(3, v1({"t": (2,)}, 4), owned={"t": (0, 1)}, generation=9),
            "b": sent(3, v1({"t": (0,)}, 4)),
        },
        {"a": ["t-1", "t-2"], "b": ["t-0"]},
    ),
    "conflict with a former generation": (
        {"a": sent(1, v1({"t": (0, 1)}, 5)), "b": sent(1, v1({"t": (1, 2)}, 6))},
        {"a": ["t-0"], "b": ["t-1", "t-2"]},
    ),
    "no member has owned anything yet": (
        {"a": sent(3, None), "b": sent(3, b"")},
        {"a": ["t-0", "t-2"], "b": ["t-1"]},
    ),
    "user data that cannot be read is no claim": (
        {"a": sent(3, b"nonsense"), "b": sent(3, v1({"t": (0, 1, 99, -1)}, 5))},
        {"a": ["t-2"], "b": ["t-0", "t-1"]},
    ),
}
COOPERATIVE: dict[str, tuple[dict[str, bytes], dict[str, list[str]]]] = {
    "fields of the protocol go before user data": (
        {"a": sent(3, b"\0\0\0\2", owned={"t": (2,)}, generation=9), "b": sent(3, None, {"t": (0, 2)}, 8)},
        {"a": ["t-1", "t-2"], "b": ["t-0"]},
    ),
    "generation of the user data where the protocol has none": (
        {"a": sent(1, b"\0\0\0\4", owned={"t": (0,)}), "b": sent(1, b"\0\0\0\5", owned={"t": (0, 1)})},
        {"a": ["t-2"], "b": ["t-0", "t-1"]},
    ),
    "versions 0, 1 and 3 of the protocol in one group": (
        {"a": sent(0, None), "b": sent(1, b"\0\0\0\4", {"t": (1,)}), "c": sent(3, None, {"t": (1, 0)}, 5)},
        {"a": ["t-1"], "b": ["t-2"], "c": ["t-0"]},
    ),
}
CASES = [
    pytest.param(name, *case, id=f"{name}: {label}")
    for name, cases in (("sticky", STICKY), ("cooperative-sticky", COOPERATIVE))
    for label, case in cases.items()
]


@pytest.mark.parametrize(("name", "metadata", "expected"), CASES)
def test_target_follows_the_claims_in_the_bytes(
    name: str, metadata: dict[str, bytes], expected: dict[str, list[str]]
) -> None:
    members = [received(name, member_id, sent) for member_id, sent in metadata.items()]
    built = group({"t": 3}, *members)

    target = strategy(name).assign(built, {})

    validity.check(built, target, even="group")
    assert by_name(built, target) == expected
