"""Whatever stands in the offsets topic, the stream goes on, keeps the bytes, and the groups beside stay right.

One running job is fed everything at once, good commits behind the bad records of the same partition; then each
test looks for its own.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from assignor.protocol.kafka.offsets import encode_group_metadata_key
from pipeline.config.model import GroupRule
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import (
    OFFSETS_TOPIC,
    create_offsets_topic,
    create_topics,
    produce,
    small_broker,
)
from tests.support.brokers.inject import RawRecord, commit_record, inject, offsets_partition
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import RunningJob, eager_plan, job_config, running

ORDERS = "orders"
END = 40
NO_TOPIC = "no-such-topic"
LAST = 2**31 - 1
NOISE = 200

_COMMIT = commit_record("victim", ORDERS, 0, 7)
_KEY, _VALUE = _COMMIT.key or b"", _COMMIT.value or b""
# In the partition of the bad records, so that it comes behind them.
GOOD = next(f"good-{n}" for n in range(100) if offsets_partition(f"good-{n}") == _COMMIT.partition)
_GROUP = group_record("victim", member("m", ORDERS, assigned={ORDERS: (0,)}))
_GROUP_KEY, _GROUP_VALUE = _GROUP.key or b"", _GROUP.value or b""
_TORN = member("torn", ORDERS, subscription=b"\x00\x03\x00\x00\x00\x01\x00\x09or")


def _noise() -> Iterator[tuple[str, bytes, bytes]]:
    chance = random.Random(3)
    for number in range(NOISE):
        noise = chance.randbytes(chance.randrange(1, 60))
        # The first two bytes are a record type: beyond 23 none is known, 1 is a commit, 2 is a group.
        yield f"random key {number}", b"\x7f" + noise, chance.randbytes(20)
        yield f"random commit key {number}", b"\x00\x01\x7f" + noise, _VALUE
        yield f"random commit value {number}", _KEY, b"\x7f" + noise
        yield f"random group value {number}", _GROUP_KEY, b"\x7f" + noise


BAD: dict[str, tuple[str, bytes, bytes | None]] = {
    "empty key": ("offset_commit", b"", _VALUE),
    "half a type": ("offset_commit", b"\x00", _VALUE),
    "key cut in the group": ("offset_commit", _KEY[:6], _VALUE),
    "key cut in the partition": ("offset_commit", _KEY[:-1], _VALUE),
    "tombstone of a cut key": ("offset_commit", _KEY[:-2], None),
    "empty value": ("offset_commit", _KEY, b""),
    "value cut in the offset": ("offset_commit", _KEY, _VALUE[:6]),
    "value cut in the end": ("offset_commit", _KEY, _VALUE[:-1]),
    "unknown version of a commit": ("offset_commit", _KEY, b"\x00\x63" + _VALUE[2:]),
    "negative version of a commit": ("offset_commit", _KEY, b"\xff\xff" + _VALUE[2:]),
    "unknown type": ("unknown_type", b"\x00\x63" + _KEY[2:], _VALUE),
    "negative type": ("unknown_type", b"\xff\xfe" + _KEY[2:], _VALUE),
    "group that is not UTF-8": ("offset_commit", _KEY.replace(b"victim", b"vict\xff\xfe"), _VALUE),
    "topic that is not UTF-8": ("offset_commit", _KEY.replace(b"orders", b"ord\xc3\x28s"), _VALUE),
    "commit for partition -1": ("offset_commit", _KEY[:-4] + b"\xff" * 4, _VALUE),
    "group value cut": ("group_metadata", _GROUP_KEY, _GROUP_VALUE[:-5]),
    "unknown version of a group": ("group_metadata", _GROUP_KEY, b"\x00\x63" + _GROUP_VALUE[2:]),
    "two billion members": (
        "group_metadata",
        _GROUP_KEY,
        _GROUP_VALUE[:34] + b"\x7f" + _GROUP_VALUE[35:],
    ),
    "name of the group that is not UTF-8": ("group_metadata", b"\x00\x02\x00\x02\xff\xfe", _GROUP_VALUE),
}
"""What is tried, and the bytes."""


class Fed(NamedTuple):
    """The job after everything."""

    job: RunningJob
    bootstrap: str
    batches_before: int
    quarantine: dict[tuple[bytes, bytes | None], dict[str, Any]]
    """By key and value; no two of the bad records are the same."""


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fed]:
    with small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        create_topics(bootstrap, {ORDERS: 3})
        produce(bootstrap, ORDERS, dict.fromkeys(range(3), END))
        with running(_config(broker, tmp_path_factory.mktemp("tables"))) as job:
            before = len(job.reports)
            inject(bootstrap, _records())
            job.wait(lambda: (ORDERS, 0) in job.lags(GOOD), what="the commit behind all others")
            job.wait_for_batches()
            rows = job.rows("quarantine")
            yield Fed(job, bootstrap, before, {(row["key"], row["value"]): row for row in rows})


def test_batches_go_on_after_everything(fed: Fed) -> None:
    fed.job.wait_for_batches()

    assert fed.job.reports[-1].stamp.batch_id == len(fed.job.reports) - 1
    assert not fed.job.reports[-1].counts.get("bad")


@pytest.mark.parametrize("name", BAD)
def test_bad_record_is_kept_with_what_was_tried_and_why(fed: Fed, name: str) -> None:
    kind, key, value = BAD[name]

    row = fed.quarantine[key, value]

    assert (row["kind"], row["topic"], row["partition"]) == (kind, OFFSETS_TOPIC, _COMMIT.partition)
    assert row["reason"]


def test_noise_is_kept_record_by_record(fed: Fed) -> None:
    lost = [name for name, key, value in _noise() if (key, value) not in fed.quarantine]

    assert lost == []


def test_quarantine_names_the_place_where_the_bytes_stand(fed: Fed) -> None:
    there = _all_records(fed.bootstrap)

    assert len(fed.quarantine) >= NOISE + len(BAD)
    assert all(there[row["partition"], row["offset"]] == pair for pair, row in fed.quarantine.items())


def test_every_bad_record_is_counted(fed: Fed) -> None:
    counts = [report.counts for report in fed.job.reports[fed.batches_before :]]

    assert sum(count.get("bad", 0) for count in counts) == len(fed.job.rows("quarantine"))
    assert sum(count.get("unknown_type_99", 0) for count in counts) == 1
    assert sum(count.get("consumer_group_current_member_assignment", 0) for count in counts) == 1


@pytest.mark.parametrize("partition", range(3))
def test_good_commit_beside_them_is_right(fed: Fed, partition: int) -> None:
    row = fed.job.lags(GOOD)[ORDERS, partition]

    assert (row["committed_offset"], row["log_end_offset"], row["lag"]) == (
        10 + partition,
        END,
        END - 10 - partition,
    )
    assert not row["provisional"]


def test_bad_record_leaves_the_last_good_one_of_its_key(fed: Fed) -> None:
    row = fed.job.lags("victim")[ORDERS, 0]

    assert row["committed_offset"] == 7


def test_megabyte_of_metadata_is_a_commit_like_any(fed: Fed) -> None:
    row = fed.job.lags("talkative")[ORDERS, 0]

    assert (row["committed_offset"], row["raw_lag"]) == (3, END - 3)


def test_clock_that_goes_back_does_not_take_a_commit_back(fed: Fed) -> None:
    row = fed.job.lags("clock-back")[ORDERS, 0]

    assert row["committed_offset"] == 20
    assert row["commit_timestamp"].timestamp() == 1_600_000_000


def test_commit_for_a_topic_that_does_not_exist_has_unknown_lag(fed: Fed) -> None:
    rows = fed.job.lags("lost")

    assert set(rows) == {(NO_TOPIC, 0), (ORDERS, LAST)}
    assert all(
        (row["lag"], row["raw_lag"], row["status"]) == (None, None, "UNKNOWN") for row in rows.values()
    )


def test_claims_on_what_does_not_exist_make_no_rows(fed: Fed) -> None:
    (group,) = [row for row in fed.job.rows("consumer_groups") if row["group_id"] == "claims"]

    assert dict(group["members"][0]["assigned"]) == {ORDERS: [-1, 0, LAST], NO_TOPIC: [0]}
    assert set(fed.job.lags("claims")) == {(ORDERS, 0)}


def test_groups_with_false_claims_are_planned_or_refused_with_a_reason(fed: Fed) -> None:
    decision = fed.job.last_decision("claims")

    assert decision["decision"] == "abstain"
    assert NO_TOPIC in decision["reason"]


def test_member_that_cannot_be_read_is_named_and_its_bytes_are_kept(fed: Fed) -> None:
    (bad,) = [row for row in fed.job.rows("quarantine") if "member torn" in row["reason"]]
    (group,) = [row for row in fed.job.rows("consumer_groups") if row["group_id"] == "torn-member"]

    assert (bad["key"], bad["value"]) == group_record("torn-member", _TORN)[1:]
    assert group["members"][0]["error"]
    assert "member torn" in fed.job.last_decision("torn-member")["reason"]


def test_control_record_that_is_too_large_is_refused_with_its_size(fed: Fed) -> None:
    decision = fed.job.last_decision("large-plan")

    assert (decision["decision"], decision["record"], decision["epoch"]) == ("abstain", None, None)
    assert "300" in decision["reason"]
    assert all(report.published == 0 for report in fed.job.reports)


def _config(broker: EmbeddedBroker, root: Path) -> Any:
    return job_config(
        broker.bootstrap_servers,
        root,
        plan=eager_plan(groups=(GroupRule(pattern="large-plan", dry_run=False),)),
        control={"max_record_bytes": 300},
    )


def _records() -> Iterator[RawRecord]:
    here = _COMMIT.partition
    yield _COMMIT
    yield from (RawRecord(here, key, value) for _, key, value in BAD.values())
    yield from (RawRecord(here, key, value) for _, key, value in _noise())
    yield RawRecord(here, b"\x00\x08" + encode_group_metadata_key("later")[2:], b"whatever")
    yield commit_record("talkative", ORDERS, 0, 3, metadata="x" * 1_000_000)
    yield commit_record("clock-back", ORDERS, 0, 10, commit_timestamp_ms=1_700_000_000_000)
    yield commit_record("clock-back", ORDERS, 0, 20, commit_timestamp_ms=1_600_000_000_000)
    yield commit_record("lost", NO_TOPIC, 0, 1)
    yield commit_record("lost", ORDERS, LAST, 1)
    claimed = {ORDERS: (-1, 0, LAST), NO_TOPIC: (0,)}
    yield group_record("claims", member("greedy", ORDERS, assigned=claimed, owned=claimed))
    yield group_record("torn-member", _TORN)
    idle = [member(f"idle-{number}", ORDERS) for number in range(5)]
    yield group_record("large-plan", member("all", ORDERS, assigned={ORDERS: (0, 1, 2)}), *idle)
    yield from (commit_record(GOOD, ORDERS, partition, 10 + partition) for partition in (2, 1, 0))


def _all_records(bootstrap: str) -> dict[tuple[int, int], tuple[bytes | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True})
    partitions = consumer.list_topics(OFFSETS_TOPIC, timeout=10).topics[OFFSETS_TOPIC].partitions
    consumer.assign([TopicPartition(OFFSETS_TOPIC, number, OFFSET_BEGINNING) for number in partitions])
    there: dict[tuple[int, int], tuple[bytes | None, bytes | None]] = {}
    unread = set(partitions)
    try:
        while unread:
            record = consumer.poll(20)
            assert record is not None, "neither a record nor the end of the partition"
            if record.error():
                assert record.error().code() == KafkaError._PARTITION_EOF
                unread.discard(record.partition())
            else:
                there[record.partition(), record.offset()] = record.key(), record.value()
    finally:
        consumer.close()
    return there
