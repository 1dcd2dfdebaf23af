import struct
from typing import Any

import pytest
from confluent_kafka import Consumer

from assignor.clients.confluent import Follower
from assignor.clients.confluent.config import (
    FollowerConfigError,
    check,
    consumer_config,
    is_static,
    reader_config,
    starts_earliest,
    writer_config,
)
from assignor.clients.confluent.group import generation_of
from assignor.errors import DecodeError

GOOD: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "enable.auto.commit": False}
REFUSED = {
    "no group": ({"group.id": ""}, "group.id", "set the group's id"),
    "KIP-848": ({"group.protocol": "consumer"}, "group.protocol", "set `classic`"),
    "cooperative": (
        {"partition.assignment.strategy": "range, cooperative-sticky"},
        "partition.assignment.strategy",
        "set `range`",
    ),
    "auto-commit": ({"enable.auto.commit": "True"}, "enable.auto.commit", "set it to False"),
    "nested": (
        {"default.topic.config": {"auto.offset.reset": "earliest"}},
        "default.topic.config",
        "move its properties up",
    ),
    "no reset": ({"auto.offset.reset": "error"}, "auto.offset.reset", "set `earliest`"),
}


@pytest.mark.parametrize(("change", "name", "cure"), REFUSED.values(), ids=REFUSED)
def test_unsafe_configuration_is_refused_with_what_to_set(
    change: dict[str, Any], name: str, cure: str
) -> None:
    with pytest.raises(FollowerConfigError, match=cure) as refused:
        Follower({**GOOD, **change}, ["t"])

    assert refused.value.name == name


@pytest.mark.parametrize("given", [{}, {"group.protocol": "Classic"}], ids=["client's default", "said"])
def test_consumer_is_classic_by_name(given: dict[str, Any]) -> None:
    assert consumer_config({**GOOD, **given})["group.protocol"] == "classic"


def test_auto_commit_that_is_on_by_default_is_refused() -> None:
    with pytest.raises(FollowerConfigError, match=r"enable\.auto\.commit"):
        check({"group.id": "g"})


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "range,roundrobin"])
def test_eager_assignors_are_taken(strategy: str) -> None:
    check({**GOOD, "partition.assignment.strategy": strategy, "enable.auto.commit": "false"})


def test_static_membership_and_the_reset_are_read_from_the_configuration() -> None:
    assert is_static({**GOOD, "group.instance.id": "i"})
    assert not is_static(GOOD)
    assert starts_earliest({**GOOD, "auto.offset.reset": "smallest"})
    assert not starts_earliest(GOOD)


def test_other_clients_share_what_reaches_the_cluster_and_nothing_of_the_group() -> None:
    config = {**GOOD, "sasl.password": "secret", "group.instance.id": "i", "stats_cb": print}

    assert writer_config(config).keys() & config.keys() == {"bootstrap.servers", "sasl.password"}
    assert reader_config(config)["enable.auto.commit"] is False
    assert "group.instance.id" not in reader_config(config)


def metadata(generation: int) -> bytes:
    return b"CGMDv2:" + struct.pack("=i", generation) + b"group\0member\0\1"


def test_generation_is_read_from_the_metadata_of_the_group() -> None:
    assert generation_of(metadata(42)) == 42


@pytest.mark.parametrize(
    "data",
    [metadata(1).replace(b"v2", b"v3"), b"", metadata(1)[:10], metadata(1)[:14]],
    ids=["another version", "empty", "cut in the generation", "cut in the ids"],
)
def test_another_layout_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        generation_of(data)


def test_layout_of_this_client_is_the_known_one() -> None:
    consumer = Consumer({**GOOD, "log_level": 0})
    try:
        assert generation_of(consumer.consumer_group_metadata()) == -1
    finally:
        consumer.close()
