"""What is injected into the offsets topic is what a reader of the topic sees."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from assignor.protocol.kafka.offsets import decode_offset_commit_value
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import OFFSETS_TOPIC, create_offsets_topic, create_topics, small_broker
from tests.support.brokers.inject import (
    RawRecord,
    commit_in_transaction,
    commit_record,
    inject,
    many_commits,
    offsets_partition,
    open_transaction,
)
from tests.support.waiting import wait_until

Pairs = list[tuple[bytes | None, bytes | None]]


def read_committed(bootstrap: str, partition: int) -> Pairs:
    """Key and value of all that a read_committed reader sees in the partition now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "inject-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(OFFSETS_TOPIC, partition, OFFSET_BEGINNING)])
    seen: Pairs = []
    try:
        while True:
            record = consumer.poll(20)
            assert record is not None, "neither a record nor the end of the partition"
            if record.error():
                assert record.error().code() == KafkaError._PARTITION_EOF
                return seen
            seen.append((record.key(), record.value()))
    finally:
        consumer.close()


def pairs(*records: RawRecord) -> Pairs:
    return [(record.key, record.value) for record in records]


def of_group(group_id: str, seen: Pairs) -> Pairs:
    return [(key, value) for key, value in seen if group_id.encode() in (key or b"")]


def test_records_arrive_in_order_byte_for_byte() -> None:
    good = commit_record("plain", "t", 0, 42)
    tombstone = commit_record("plain", "t", 0, None)
    garbage = RawRecord(good.partition, b"\xff\xffplain", b"\x00")
    large = commit_record("plain", "t", 1, 7, metadata="x" * 1_000_000)

    # Not on a broker that others use: no coordinator can read its partition again after this.
    with small_broker() as broker:
        create_offsets_topic(broker.bootstrap_servers)
        count = inject(broker.bootstrap_servers, [good, garbage, large, tombstone])
        seen = of_group("plain", read_committed(broker.bootstrap_servers, good.partition))

    assert count == 4
    assert seen == pairs(good, garbage, large, tombstone)


def test_record_without_key_is_taken_nowhere(forged_broker: EmbeddedBroker) -> None:
    with pytest.raises(AssertionError, match="INVALID_RECORD"):
        inject(forged_broker.bootstrap_servers, [RawRecord(0, None, b"value")])


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_only_a_committed_transaction_shows(forged_broker: EmbeddedBroker, commit: bool) -> None:
    name = f"transaction-{commit}"
    create_topics(forged_broker.bootstrap_servers, {name: 1})

    commit_in_transaction(forged_broker.bootstrap_servers, name, {(name, 0): 5}, commit=commit)

    seen = of_group(name, read_committed(forged_broker.bootstrap_servers, offsets_partition(name)))
    # A coordinator that was reading its partition may have taken the same commit twice.
    values = [decode_offset_commit_value(value or b"") for _, value in seen]
    assert {value and value.committed_offset for value in values} == ({5} if commit else set())


def test_open_transaction_holds_back_what_follows_until_it_ends(forged_broker: EmbeddedBroker) -> None:
    create_topics(forged_broker.bootstrap_servers, {"held": 1})
    later = commit_record("held", "t", 1, 6)

    with open_transaction(forged_broker.bootstrap_servers, "held", {("held", 0): 5}):
        inject(forged_broker.bootstrap_servers, [later])
        during = of_group("held", read_committed(forged_broker.bootstrap_servers, later.partition))

    assert during == []
    wait_until(
        lambda: (
            of_group("held", read_committed(forged_broker.bootstrap_servers, later.partition)) == pairs(later)
        ),
        what="what follows the transaction",
    )


def test_load_commits_every_partition_of_every_group_in_each_round(forged_broker: EmbeddedBroker) -> None:
    records = list(many_commits(groups=2, topics=2, partitions=3, rounds=2))

    inject(forged_broker.bootstrap_servers, records)

    assert len({(record.key, record.value) for record in records}) == 24
    for group in ("load-group-00000", "load-group-00001"):
        mine = [record for record in records if record.partition == offsets_partition(group)]
        seen = of_group(group, read_committed(forged_broker.bootstrap_servers, offsets_partition(group)))
        assert seen == of_group(group, pairs(*mine))


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("my-group", 12),
        ("test", 48),
        ("payments", 13),
        ("console-consumer-1", 24),
        ("été", 42),
        ("polygenelubricants", 0),
    ],
    ids=["my-group", "test", "payments", "console-consumer-1", "not ascii", "hash without absolute value"],
)
def test_partition_of_a_group_is_the_brokers(group_id: str, partition: int) -> None:
    assert offsets_partition(group_id, 50) == partition
