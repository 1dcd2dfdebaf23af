"""Topics and groups that go and come back, and commits outside of the log: right figures, and a stream that goes on.

Raw commits stand for those that a broker does not clean up: a coordinator that was away when the topic went, or
compaction that has not come yet.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.support.broker import admin_client, create_topics, produce, small_broker
from tests.support.group_records import group_record, member
from tests.support.inject import commit_record, inject
from tests.support.job import RunningJob, job_config, running


class Stream(NamedTuple):
    """A job on a broker whose topics each test makes for itself."""

    job: RunningJob
    bootstrap: str
    admin: AdminClient


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    with small_broker() as broker:
        config = job_config(broker.bootstrap_servers, tmp_path_factory.mktemp("tables"))
        with running(config) as job:
            yield Stream(job, broker.bootstrap_servers, admin_client(broker.bootstrap_servers))


def test_commit_below_log_start_is_expired_and_lags_by_what_is_left(stream: Stream) -> None:
    _topic(stream, "trimmed", {0: 10})
    deleted = stream.admin.delete_records([TopicPartition("trimmed", 0, 6)])
    assert [future.result(30).low_watermark for future in deleted.values()] == [6]

    inject(stream.bootstrap, [commit_record("g-trimmed", "trimmed", 0, 2)])
    stream.job.wait(lambda: _shown(stream, "trimmed", log_start_offset=6), what="the new log start")

    row = stream.job.lags("g-trimmed")["trimmed", 0]
    assert (row["lag"], row["raw_lag"], row["status"]) == (4, 8, "EXPIRED")


def test_commit_beyond_log_end_has_no_lag_and_a_negative_difference(stream: Stream) -> None:
    _topic(stream, "ahead", {0: 5})

    inject(stream.bootstrap, [commit_record("g-ahead", "ahead", 0, 9)])
    stream.job.wait(lambda: _shown(stream, "ahead", log_end_offset=5), what="the commit")

    row = stream.job.lags("g-ahead")["ahead", 0]
    assert (row["lag"], row["raw_lag"], row["lag_seconds"]) == (0, -4, 0.0)


def test_deleted_topic_leaves_its_commits_with_unknown_lag(stream: Stream) -> None:
    _topic(stream, "doomed", {0: 5})
    inject(stream.bootstrap, [commit_record("g-doomed", "doomed", 0, 2)])
    stream.job.wait(lambda: _shown(stream, "doomed", lag=3), what="the commit")

    _delete(stream, "doomed")
    stream.job.wait(lambda: _shown(stream, "doomed", status="DELETED"), what="a deleted topic")

    row = stream.job.lags("g-doomed")["doomed", 0]
    assert (row["committed_offset"], row["lag"], row["raw_lag"], row["log_end_offset"]) == (
        2,
        None,
        None,
        None,
    )


def test_commit_that_the_broker_removes_with_its_topic_goes(stream: Stream) -> None:
    _topic(stream, "dropped", {0: 5})
    _commit(stream, "g-dropped", "dropped", 2)
    stream.job.wait(lambda: _shown(stream, "dropped", lag=3), what="the commit")

    _delete(stream, "dropped")

    stream.job.wait(lambda: not stream.job.lags("g-dropped"), what="the end of its rows")


def test_topic_made_again_smaller_starts_a_new_history(stream: Stream) -> None:
    _topic(stream, "shrunk", {0: 20, 1: 20, 2: 20})
    inject(stream.bootstrap, [commit_record("g-shrunk", "shrunk", p, 15) for p in range(3)])
    stream.job.wait(lambda: _shown(stream, "shrunk", lag=5), what="the commits")
    _delete(stream, "shrunk")
    stream.job.wait(lambda: _shown(stream, "shrunk", status="DELETED"), what="a deleted topic")

    _topic(stream, "shrunk", {0: 3})
    stream.job.wait(lambda: _shown(stream, "shrunk", log_end_offset=3), what="the new topic")

    rows = stream.job.lags("g-shrunk")
    assert (rows["shrunk", 0]["lag"], rows["shrunk", 0]["raw_lag"]) == (0, -12)
    assert {rows["shrunk", p]["status"] for p in (1, 2)} == {"DELETED"}
    assert {rows["shrunk", p]["lag"] for p in (1, 2)} == {None}
    (known,) = [r for r in stream.job.rows("topic_offsets") if r["topic"] == "shrunk" and not r["deleted_at"]]
    assert {sample["log_end_offset"] for sample in known["samples"]} <= {0, 3}
    assert not known["arrival_rate"] or known["arrival_rate"] > 0


def test_topic_made_again_between_two_batches_never_lags_below_zero(stream: Stream) -> None:
    _topic(stream, "swapped", {0: 20})
    inject(stream.bootstrap, [commit_record("g-swapped", "swapped", 0, 15)])
    stream.job.wait(lambda: _shown(stream, "swapped", lag=5), what="the commit")

    _delete(stream, "swapped")
    _topic(stream, "swapped", {0: 3})
    stream.job.wait(lambda: _shown(stream, "swapped", log_end_offset=3), what="the new topic")

    row = stream.job.lags("g-swapped")["swapped", 0]
    assert (row["lag"], row["raw_lag"]) == (0, -12)
    assert row["arrival_rate"] is None or row["arrival_rate"] >= 0


def test_grown_topic_shows_its_new_partitions_with_the_group_that_got_them(stream: Stream) -> None:
    _topic(stream, "grown", {0: 5})
    inject(
        stream.bootstrap,
        [
            group_record("g-grown", member("m", "grown", assigned={"grown": (0,)})),
            commit_record("g-grown", "grown", 0, 2),
        ],
    )
    stream.job.wait(lambda: _shown(stream, "grown", lag=3), what="the commit")

    grown = stream.admin.create_partitions([NewPartitions("grown", 3)])
    assert [future.result(30) for future in grown.values()] == [None]
    rebalanced = group_record("g-grown", member("m", "grown", assigned={"grown": (0, 1, 2)}), generation=2)
    inject(stream.bootstrap, [rebalanced])
    stream.job.wait(lambda: len(stream.job.lags("g-grown")) == 3, what="three partitions")

    rows = stream.job.lags("g-grown")
    assert rows["grown", 0]["lag"] == 3
    for partition in (1, 2):
        row = rows["grown", partition]
        assert (row["committed_offset"], row["lag"], row["status"]) == (None, None, "NOT_COMMITTED")
        assert (row["log_end_offset"], row["member_id"], row["generation"]) == (0, "m", 2)


def test_group_deleted_and_made_again_shows_only_what_it_committed_since(stream: Stream) -> None:
    _topic(stream, "visited", {0: 9, 1: 9})
    _commit(stream, "g-visited", "visited", 7, 6)
    stream.job.wait(lambda: len(stream.job.lags("g-visited")) == 2, what="both commits")

    deleted = stream.admin.delete_consumer_groups(["g-visited"])
    assert [future.result(30) for future in deleted.values()] == [None]
    stream.job.wait(lambda: not stream.job.lags("g-visited"), what="the end of the group")
    _commit(stream, "g-visited", "visited", 4)
    stream.job.wait(lambda: stream.job.lags("g-visited"), what="the group again")

    rows = stream.job.lags("g-visited")
    assert {key: row["committed_offset"] for key, row in rows.items()} == {("visited", 0): 4}


def test_no_lag_anywhere_is_negative_or_not_a_number(stream: Stream) -> None:
    stream.job.wait_for_batches(1)

    lags = [row["lag"] for table in ("partition_lag", "lag_history") for row in stream.job.rows(table)]
    ages = [row["lag_seconds"] for row in stream.job.rows("lag_history")]

    assert all(lag is None or lag >= 0 for lag in lags)
    assert all(age is None or age >= 0 for age in ages)


def _topic(stream: Stream, name: str, counts: dict[int, int]) -> None:
    create_topics(stream.bootstrap, {name: len(counts)})
    produce(stream.bootstrap, name, counts)


def _delete(stream: Stream, topic: str) -> None:
    for future in stream.admin.delete_topics([topic]).values():
        future.result(30)
    stream.job.wait(lambda: topic not in stream.admin.list_topics(timeout=10).topics, what=f"{topic} gone")


def _commit(stream: Stream, group_id: str, topic: str, *offsets: int) -> None:
    """Through the group's coordinator, as a consumer does."""
    consumer = Consumer({"bootstrap.servers": stream.bootstrap, "group.id": group_id, "log_level": 0})
    try:
        places = [TopicPartition(topic, p, offset) for p, offset in enumerate(offsets)]
        consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


def _shown(stream: Stream, topic: str, **columns: object) -> bool:
    """Whether partition 0 of the topic has these values in the row of its group `g-TOPIC`."""
    row = stream.job.lags(f"g-{topic}").get((topic, 0))
    return row is not None and all(row[name] == value for name, value in columns.items())
