"""What members under one name tell its leader, and what Kafka's own classes would read of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from assignor.clients.plugin.dialect import Joined, dialect, read_subscription
from assignor.clients.plugin.user_data import SubscriptionData, encode_subscription_data
from assignor.protocol.kafka.consumer import Subscription, encode_subscription
from assignor.protocol.kafka.sticky import Claims

OWNED = {"t": (0, 2)}
# As Kafka 4.2 writes them: StickyAssignor.serializeTopicPartitionAssignment, CooperativeStickyAssignor.subscriptionUserData.
JAVA_STICKY = bytes.fromhex("00000001 0001 74 00000002 00000000 00000002 00000005")
JAVA_COOPERATIVE = bytes.fromhex("00000005")
OF_KAFKA_PYTHON = bytes.fromhex("0001") + JAVA_STICKY


def data(generation: int = 5, *, held: bool = False, owned: Any = OWNED) -> SubscriptionData:
    return SubscriptionData(claims=Claims(owned=owned, generation=generation), plan_epoch=0, held=held)


def joined(user_data: bytes | None, **more: Any) -> Joined:
    return Joined(member_id="m", topics=["t"], user_data=user_data, **more)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sticky", JAVA_STICKY),
        ("cooperative-sticky", JAVA_COOPERATIVE),
        ("range", None),
        ("roundrobin", None),
    ],
)
def test_under_a_name_of_kafka_members_say_what_java_says(name: str, said: bytes | None) -> None:
    assert dialect(name).say(data()) == said
    assert not dialect(name).answers


def test_sticky_member_says_nothing_before_its_first_assignment() -> None:
    assert dialect("sticky").say(data(-1, owned={})) is None


@pytest.mark.parametrize("user_data", [JAVA_STICKY, OF_KAFKA_PYTHON], ids=["Java", "kafka-python"])
def test_sticky_leader_reads_what_other_clients_say(user_data: bytes) -> None:
    assert dialect("sticky").hear(joined(user_data)) == data()


def test_sticky_leader_reads_version_0_as_no_generation() -> None:
    assert dialect("sticky").hear(joined(JAVA_STICKY[:-4])) == data(-1)


def test_cooperative_sticky_leader_goes_by_what_the_protocol_says_is_owned() -> None:
    hear = dialect("cooperative-sticky").hear

    assert hear(joined(JAVA_COOPERATIVE, owned=OWNED)) == data(held=True)
    assert hear(joined(JAVA_COOPERATIVE, owned={})) == data(owned={})
    assert hear(joined(None, owned=OWNED, generation=5)) == data(held=True)


OURS = encode_subscription_data(data(held=True))
CASES: Mapping[str, tuple[Joined, SubscriptionData]] = {
    "a client without the field": (joined(OURS), data(held=True)),
    "a client that owns what it claims": (joined(OURS, owned=OWNED), data(held=True)),
    "a client that lost what it claims": (joined(OURS, owned={}), data(held=False)),
    "a client that owns less": (joined(OURS, owned={"t": (2,)}), data(held=True, owned={"t": (2,)})),
    "another implementation": (joined(b"\x01", owned=OWNED, generation=5), data(held=True)),
}


@pytest.mark.parametrize(("member", "heard"), CASES.values(), ids=CASES)
def test_what_is_held_is_what_the_client_says_it_owns(member: Joined, heard: SubscriptionData) -> None:
    assert dialect("lagwise").hear(member) == heard


@pytest.mark.parametrize(("version", "owned"), [(0, None), (1, OWNED), (3, OWNED)])
def test_subscription_is_read_as_far_as_its_version_goes(version: int, owned: Any) -> None:
    written = Subscription(topics=("t",), user_data=b"x", owned=OWNED, generation=5)

    read = read_subscription("m", encode_subscription(written, version=version))

    assert (read.owned, read.generation) == (owned, 5 if version > 1 else -1)


def test_subscription_that_cannot_be_read_wants_nothing() -> None:
    assert read_subscription("m", b"\x00") == Joined(member_id="m", topics=(), user_data=None)
