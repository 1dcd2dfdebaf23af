"""What a worker reads of its spans from a real broker, how far each was read, and why no further."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from pipeline.kafka.positions import TRUNCATED, PartitionKey, Span
from pipeline.kafka.sources.records import consumer as records_consumer
from pipeline.kafka.sources.records.consumer import consume
from pipeline.kafka.sources.records.settings import ReadSettings
from pipeline.kafka.sources.records.taking import RECORDS
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import OFFSETS_TOPIC, admin_client, create_topics, produce, small_broker
from tests.support.brokers.inject import commit_in_transaction, offsets_partition
from tests.support.waiting import wait_until

TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Read:
    """All that came of some spans."""

    offsets: dict[PartitionKey, list[int]]
    records: list[dict[str, Any]]
    reached: dict[PartitionKey, tuple[int, str | None]]
    """Where reading goes on, and why it stopped before the end of the span."""


def read(bootstrap: str, *spans: Span, timeout_s: float = TIMEOUT_S) -> Read:
    pieces = list(consume(list(spans), settings_of(bootstrap, timeout_s)))
    batches, rows = pieces[:-1], pieces[-1]
    assert all(isinstance(batch, pa.RecordBatch) and batch.schema == RECORDS for batch in batches)
    assert isinstance(rows, list)
    records = [row for batch in batches for row in batch.to_pylist()]
    offsets: dict[PartitionKey, list[int]] = {span.key: [] for span in spans}
    for record in records:
        offsets[record["topic"], record["partition"]].append(record["offset"])
    reached = {(row["topic"], row["partition"]): (row["position"], row["error"]) for row in rows}
    return Read(offsets, records, reached)


def settings_of(bootstrap: str, timeout_s: float) -> ReadSettings:
    return ReadSettings(properties={"bootstrap.servers": bootstrap, "log_level": "0"}, timeout_s=timeout_s)


def span(topic: str, start: int, end: int, *, partition: int = 0, epoch: int = -1) -> Span:
    return Span(topic=topic, partition=partition, start=start, end=end, leader_epoch=epoch)


@pytest.fixture(autouse=True)
def _consumers_closed() -> Iterator[None]:
    """A worker keeps its consumers for the next batch."""
    yield
    for consumer in records_consumer._consumers.values():
        consumer.close()
    records_consumer._consumers.clear()


@pytest.fixture
def bootstrap(broker: EmbeddedBroker) -> str:
    return broker.bootstrap_servers


def high_watermark(bootstrap: str, topic: str, partition: int = 0) -> int:
    admin = admin_client(bootstrap)
    (future,) = admin.list_offsets({TopicPartition(topic, partition): OffsetSpec.latest()}).values()
    return int(future.result().offset)


def create_topic(bootstrap: str, name: str, config: Mapping[str, str]) -> None:
    admin = admin_client(bootstrap)
    (future,) = admin.create_topics([NewTopic(name, 1, 1, config=dict(config))]).values()
    future.result()


def test_exactly_the_records_of_each_span_are_read_in_the_order_of_the_log(bootstrap: str) -> None:
    create_topics(bootstrap, {"spans": 3})
    produce(bootstrap, "spans", {0: 20, 1: 10, 2: 5})

    found = read(bootstrap, span("spans", 5, 12), span("spans", 0, 10, partition=1))

    assert found.offsets == {("spans", 0): list(range(5, 12)), ("spans", 1): list(range(10))}
    assert found.reached == {("spans", 0): (12, None), ("spans", 1): (10, None)}
    assert [record["value"] for record in found.records if record["partition"] == 1] == [
        str(number).encode() for number in range(10)
    ]
    assert {record["key"] for record in found.records} == {None}


def test_next_span_of_the_same_worker_goes_on_with_the_leader_epoch_of_the_last(bootstrap: str) -> None:
    create_topics(bootstrap, {"goes-on": 1})
    produce(bootstrap, "goes-on", {0: 10})
    (*_, rows) = consume([span("goes-on", 0, 4)], settings_of(bootstrap, TIMEOUT_S))
    assert isinstance(rows, list)

    found = read(bootstrap, span("goes-on", 4, 10, epoch=rows[0]["leader_epoch"]))

    assert rows[0]["leader_epoch"] >= 0
    assert found.offsets == {("goes-on", 0): list(range(4, 10))}
    assert found.reached == {("goes-on", 0): (10, None)}


def test_worker_that_reads_the_same_partitions_batch_after_batch_is_never_left_waiting(
    bootstrap: str,
) -> None:
    create_topics(bootstrap, {"again": 2})
    for number in range(6):
        produce(bootstrap, "again", {0: 3, 1: 3})
        begin, end = 3 * number, 3 * number + 3

        found = read(bootstrap, span("again", begin, end), span("again", begin, end, partition=1))

        assert found.reached == {("again", 0): (end, None), ("again", 1): (end, None)}


def test_records_that_compaction_has_removed_do_not_hold_a_span_up(bootstrap: str) -> None:
    create_topic(
        bootstrap,
        "compacted",
        {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.001"},
    )
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(40):
        # Each in a segment of its own; the last one is never compacted.
        producer.produce("compacted", key=str(number % 2), value=str(number))
        assert producer.flush(30) == 0

    def left() -> list[int]:
        return read(bootstrap, span("compacted", 0, 40)).offsets["compacted", 0]

    wait_until(lambda: len(left()) < 20, what="compaction", within_s=60)
    kept = left()
    gap_ends_at = next(n for n in range(39, 0, -1) if n not in kept) + 1

    into_the_gap = read(bootstrap, span("compacted", 1, gap_ends_at - 1))

    assert kept[-1] == 39
    assert into_the_gap.offsets["compacted", 0] == [n for n in kept if 1 <= n < gap_ends_at - 1]
    assert into_the_gap.reached == {("compacted", 0): (gap_ends_at - 1, None)}


def transact(bootstrap: str, topic: str, values: list[str], *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value)
    assert producer.flush(30) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(30)


def test_records_of_an_aborted_transaction_never_show_and_markers_hold_nothing_up(bootstrap: str) -> None:
    create_topics(bootstrap, {"transactions": 1})
    transact(bootstrap, "transactions", ["a", "b"], commit=True)
    transact(bootstrap, "transactions", ["never", "never"], commit=False)
    transact(bootstrap, "transactions", ["c"], commit=True)
    transact(bootstrap, "transactions", ["never"], commit=False)
    end = high_watermark(bootstrap, "transactions")

    whole = read(bootstrap, span("transactions", 0, end))
    parts = [read(bootstrap, span("transactions", start, start + 1)) for start in range(end)]

    assert [record["value"] for record in whole.records] == [b"a", b"b", b"c"]
    assert whole.reached == {("transactions", 0): (end, None)}
    # Wherever a batch's budget cuts the log, aborted records and markers included.
    assert [record["value"] for part in parts for record in part.records] == [b"a", b"b", b"c"]
    assert [part.reached["transactions", 0] for part in parts] == [(n + 1, None) for n in range(end)]


def test_commits_of_an_aborted_transaction_never_show(bootstrap: str) -> None:
    create_topics(bootstrap, {"aborted": 1})
    group = "aborted-commits"
    commit_in_transaction(bootstrap, group, {("aborted", 0): 5}, commit=False)
    commit_in_transaction(bootstrap, group, {("aborted", 0): 3}, commit=True)
    partition = offsets_partition(group)
    end = high_watermark(bootstrap, OFFSETS_TOPIC, partition)

    found = read(bootstrap, span(OFFSETS_TOPIC, 0, end, partition=partition))

    commits = [record for record in found.records if b"aborted-commits\x00\x07aborted" in record["key"]]
    assert [int.from_bytes(record["value"][2:10], "big") for record in commits] == [3]
    assert found.reached == {(OFFSETS_TOPIC, partition): (end, None)}


def test_end_that_the_leader_does_not_serve_yet_ends_the_span_at_its_last_record(bootstrap: str) -> None:
    create_topics(bootstrap, {"held-back": 1})
    produce(bootstrap, "held-back", {0: 3})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "held-back", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("held-back", value="not yet")
    assert producer.flush(30) == 0
    try:
        begun = time.monotonic()
        found = read(bootstrap, span("held-back", 0, 4))
        took_s = time.monotonic() - begun
    finally:
        producer.abort_transaction(30)

    assert found.offsets == {("held-back", 0): [0, 1, 2]}
    assert found.reached == {("held-back", 0): (3, None)}
    assert took_s < TIMEOUT_S


@pytest.mark.parametrize("start", [10, 2], ids=["beyond the end of the log", "before its start"])
def test_position_that_the_log_does_not_have_says_so_and_is_never_moved(bootstrap: str, start: int) -> None:
    topic = f"no-position-{start}"
    create_topics(bootstrap, {topic: 1, f"{topic}-sound": 1})
    produce(bootstrap, topic, {0: 6})
    produce(bootstrap, f"{topic}-sound", {0: 6})
    admin = admin_client(bootstrap)
    (future,) = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    future.result()

    found = read(bootstrap, span(topic, start, 20), span(f"{topic}-sound", 0, 6))

    position, error = found.reached[topic, 0]
    assert (position, found.offsets[topic, 0]) == (start, [])
    assert (error or "").startswith(TRUNCATED)
    assert found.reached[f"{topic}-sound", 0] == (6, None)


def test_time_that_no_column_holds_is_null_and_the_record_is_read(bootstrap: str) -> None:
    create_topic(bootstrap, "odd-times", {"message.timestamp.after.max.ms": str(2**63 - 1)})
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for at_ms in (1_700_000_000_000, 2**62, 1_700_000_000_001):
        producer.produce("odd-times", value=str(at_ms), timestamp=at_ms)
    assert producer.flush(30) == 0

    found = read(bootstrap, span("odd-times", 0, 3))

    assert found.offsets == {("odd-times", 0): [0, 1, 2]}
    times = [
        record["timestamp"] and round(record["timestamp"].timestamp() * 1000) for record in found.records
    ]
    assert times == [1_700_000_000_000, None, 1_700_000_000_001]
    assert found.reached == {("odd-times", 0): (3, None)}


def test_topic_that_is_not_there_is_an_error_of_its_span_alone(bootstrap: str) -> None:
    create_topics(bootstrap, {"there": 1})
    produce(bootstrap, "there", {0: 3})

    found = read(bootstrap, span("not-there", 0, 3), span("there", 0, 3))

    assert found.reached["there", 0] == (3, None)
    position, error = found.reached["not-there", 0]
    assert position == 0
    assert error


def test_time_that_the_reader_takes_for_itself_is_no_silence_of_the_leader(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(bootstrap, {"slow-reader": 2})
    produce(bootstrap, "slow-reader", {0: 40, 1: 40})
    monkeypatch.setattr(records_consumer, "_AT_A_TIME", 10)
    seen: list[int] = []
    rows: Any = []

    for piece in consume(
        [span("slow-reader", 0, 40), span("slow-reader", 0, 40, partition=1)], settings_of(bootstrap, 0.5)
    ):
        if isinstance(piece, list):
            rows = piece
        else:
            seen += piece["offset"].to_pylist()
            # The JVM that takes the rows collects its garbage.
            time.sleep(0.7)

    assert [(row["position"], row["error"]) for row in rows] == [(40, None), (40, None)]
    assert len(seen) == 80


def test_broker_that_hangs_is_given_up_in_time_and_read_again_when_it_is_back() -> None:
    with small_broker() as own:
        servers = own.bootstrap_servers
        create_topics(servers, {"frozen": 1})
        produce(servers, "frozen", {0: 10})
        before = read(servers, span("frozen", 0, 4), timeout_s=2)
        own.pause()
        begun = time.monotonic()
        try:
            away = [read(servers, span("frozen", 4, 10), timeout_s=2) for _ in range(2)]
            took_s = time.monotonic() - begun
        finally:
            own.resume()

        wait_until(
            lambda: read(servers, span("frozen", 4, 10), timeout_s=2).reached == {("frozen", 0): (10, None)},
            what="the records that were left",
        )

    assert before.reached == {("frozen", 0): (4, None)}
    for one in away:
        position, error = one.reached["frozen", 0]
        assert position == 4 + len(one.offsets["frozen", 0])
        # The client may have fetched the rest before the broker froze; to read it once more it has to ask.
        assert position == 10 or "does not answer" in (error or "")
    assert "does not answer" in (away[-1].reached["frozen", 0][1] or "")
    assert took_s < 2 * (2 + 2)


def test_partition_that_was_read_before_is_read_on_at_once(bootstrap: str) -> None:
    took_s = []
    for name in ("again-1", "again-2", "again-3"):
        create_topics(bootstrap, {name: 1})
        produce(bootstrap, name, {0: 30})
        for start in (0, 10, 20):
            begun = time.monotonic()
            found = read(bootstrap, span(name, start, start + 10))
            assert found.offsets == {(name, 0): list(range(start, start + 10))}
            if start:
                took_s.append(time.monotonic() - begun)

    # Of a client that sleeps until its next look, one in three takes a second and the others a tenth.
    assert sum(took_s) < 2, took_s
    assert min(took_s) < 0.09, took_s
