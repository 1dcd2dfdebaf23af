"""Topics and groups that go and come back, and commits outside of the log: right figures, and a stream that goes on.

A play in three acts under one running job; each test looks at the acts that concern it. Raw commits stand for
those that a broker does not clean up: its coordinator was away when the topic went, or compaction is yet to come.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.support.brokers.broker import admin_client, create_topics, produce, small_broker
from tests.support.brokers.inject import commit_record, inject
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import RunningJob, job_config, running
from tests.support.waiting import wait_until

ENDS = {
    "trimmed": {0: 10},
    "ahead": {0: 5},
    "doomed": {0: 5},
    "dropped": {0: 5},
    "shrunk": {0: 20, 1: 20, 2: 20},
    "swapped": {0: 20},
    "grown": {0: 5},
    "visited": {0: 9, 1: 9},
}
"""Records by partition of each topic in the first act; the group `g-TOPIC` commits on it."""

_COORDINATOR_IS_COMING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)

Rows = dict[tuple[str, int], dict[str, Any]]


class Play(NamedTuple):
    """Rows of `partition_lag` after each act."""

    job: RunningJob
    at_first: Rows
    in_between: Rows
    at_last: Rows


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    with small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        admin = admin_client(bootstrap)
        with running(job_config(bootstrap, tmp_path_factory.mktemp("tables"))) as job:
            _make_topics_and_commits(bootstrap)
            at_first = _after(job)
            _trim_delete_and_grow(bootstrap, admin)
            # The coordinator clears away the commits of a deleted topic in its own time.
            job.wait(lambda: not job.lags("g-dropped"), what="the end of commits on a deleted topic")
            in_between = _after(job)
            _make_again(bootstrap)
            yield Play(job, at_first, in_between, _after(job))


def test_commits_lag_as_usual_at_first(play: Play) -> None:
    lags = {key: row["lag"] for key, row in play.at_first.items()}

    assert lags == {
        ("trimmed", 0): 8,
        ("ahead", 0): None,
        ("doomed", 0): 3,
        ("dropped", 0): 3,
        **{("shrunk", partition): 5 for partition in range(3)},
        ("swapped", 0): 5,
        ("grown", 0): 3,
        ("visited", 0): 2,
        ("visited", 1): 3,
    }


def test_commit_beyond_log_end_has_unknown_lag_and_a_negative_difference(play: Play) -> None:
    row = play.at_last["ahead", 0]

    assert (row["lag"], row["raw_lag"], row["lag_seconds"]) == (None, -4, None)
    assert (row["log_end_offset"], row["status"]) == (5, "UNKNOWN")


def test_commit_below_log_start_is_expired_and_lags_by_what_is_left(play: Play) -> None:
    row = play.at_last["trimmed", 0]

    assert (row["log_start_offset"], row["lag"], row["raw_lag"], row["status"]) == (6, 4, 8, "EXPIRED")


def test_deleted_topic_leaves_its_commits_with_unknown_lag(play: Play) -> None:
    for rows in (play.in_between, play.at_last):
        row = rows["doomed", 0]
        assert (row["committed_offset"], row["status"]) == (2, "DELETED")
        assert (row["lag"], row["raw_lag"], row["log_end_offset"]) == (None, None, None)


def test_commit_that_the_broker_removes_with_its_topic_goes(play: Play) -> None:
    assert ("dropped", 0) not in play.in_between


def test_topic_made_again_smaller_starts_a_new_history(play: Play) -> None:
    assert {play.in_between["shrunk", p]["status"] for p in range(3)} == {"DELETED"}

    first, *others = (play.at_last["shrunk", p] for p in range(3))
    topics = [row for row in play.job.rows("topic_offsets") if row["topic"] == "shrunk"]
    # The commit is of the topic before: 15 means nothing in a log that ends at 3.
    assert (first["lag"], first["raw_lag"], first["status"]) == (None, None, "UNKNOWN")
    assert [(row["lag"], row["status"]) for row in others] == [(None, "DELETED")] * 2
    (known,) = [row for row in topics if row["deleted_at"] is None]
    assert {sample["log_end_offset"] for sample in known["samples"]} <= {0, 3}


def test_topic_made_again_at_once_is_not_compared_with_the_commit_of_the_one_before(play: Play) -> None:
    row = play.in_between["swapped", 0]

    assert (row["committed_offset"], row["log_end_offset"]) == (15, None)
    assert (row["lag"], row["raw_lag"], row["status"]) == (None, None, "UNKNOWN")
    assert row["arrival_rate"] is None or row["arrival_rate"] >= 0


def test_grown_topic_shows_its_new_partitions_with_the_member_that_got_them(play: Play) -> None:
    assert play.in_between["grown", 0]["lag"] == 3
    for partition in (1, 2):
        row = play.at_last["grown", partition]
        assert (row["committed_offset"], row["lag"], row["status"]) == (None, None, "NOT_COMMITTED")
        assert (row["log_end_offset"], row["member_id"], row["generation"]) == (0, "m", 2)


def test_group_deleted_and_made_again_shows_only_what_it_committed_since(play: Play) -> None:
    assert not any(topic == "visited" for topic, _ in play.in_between)

    commits = {key: row["committed_offset"] for key, row in play.at_last.items() if key[0] == "visited"}
    assert commits == {("visited", 0): 4}


def test_no_lag_and_no_age_was_ever_negative(play: Play) -> None:
    rows = play.job.rows("lag_history")

    assert rows
    assert all(row["lag"] is None or row["lag"] >= 0 for row in rows)
    assert all(row["lag_seconds"] is None or row["lag_seconds"] >= 0 for row in rows)


def _make_topics_and_commits(bootstrap: str) -> None:
    create_topics(bootstrap, {topic: len(ends) for topic, ends in ENDS.items()})
    for topic, ends in ENDS.items():
        produce(bootstrap, topic, ends)
    # These four are in four partitions of the offsets topic. Their coordinators answer only when they have read
    # what is there, so they never learn of the raw commits that follow, and do not clean them up.
    for topic, offsets in {"dropped": (2,), "visited": (7, 6), "ahead": (9,), "grown": (2,)}.items():
        _commit(bootstrap, f"g-{topic}", topic, *offsets)
    raw = {"trimmed": 2, "doomed": 2, "shrunk": 15, "swapped": 15}
    inject(
        bootstrap,
        [commit_record(f"g-{topic}", topic, p, offset) for topic, offset in raw.items() for p in ENDS[topic]],
    )
    inject(bootstrap, [group_record("g-grown", member("m", "grown", assigned={"grown": (0,)}))])


def _trim_delete_and_grow(bootstrap: str, admin: AdminClient) -> None:
    _all_done(admin.delete_records([TopicPartition("trimmed", 0, 6)]))
    deleted = {"doomed", "dropped", "shrunk", "swapped"}
    _all_done(admin.delete_topics(sorted(deleted)))
    wait_until(lambda: deleted.isdisjoint(admin.list_topics(timeout=10).topics), what="deleted topics")
    _all_done(admin.create_partitions([NewPartitions("grown", 3)]))
    _delete_group(admin, "g-visited")
    inject(
        bootstrap,
        [group_record("g-grown", member("m", "grown", assigned={"grown": (0, 1, 2)}), generation=2)],
    )
    create_topics(bootstrap, {"swapped": 1})
    produce(bootstrap, "swapped", {0: 3})


def _make_again(bootstrap: str) -> None:
    create_topics(bootstrap, {"shrunk": 1})
    produce(bootstrap, "shrunk", {0: 3})
    _commit(bootstrap, "g-visited", "visited", 4)


def _after(job: RunningJob) -> Rows:
    """What the tables say once everything done so far is in: the second batch from now began after it."""
    job.wait_for_batches()
    lags: list[dict[str, Any]] = []

    def answered() -> bool:
        # A broker short of time leaves questions unanswered; then what was known stays.
        topics = job.rows("topic_offsets")
        lags[:] = job.rows("partition_lag")
        are_of_one_batch = len({row["batch_id"] for row in (*topics, *lags)}) == 1
        return are_of_one_batch and not any(row["error"] for row in topics)

    job.wait(answered, what="a batch with answers about all topics")
    return {(row["topic"], row["partition"]): row for row in lags}


def _all_done(asked: dict[Any, Future[Any]]) -> None:
    for future in asked.values():
        future.result(30)


def _delete_group(admin: AdminClient, group_id: str) -> None:
    def delete() -> None:
        try:
            _all_done(admin.delete_consumer_groups([group_id]))
        except KafkaException as error:
            # A request that was answered NOT_COORDINATOR may have been carried out by another attempt of the client.
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise

    _when_coordinated(delete, group_id)


def _commit(bootstrap: str, group_id: str, topic: str, *offsets: int) -> None:
    """Through the group's coordinator, as a consumer does."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "log_level": 0})
    places = [TopicPartition(topic, p, offset) for p, offset in enumerate(offsets)]

    def commit() -> None:
        consumer.commit(offsets=places, asynchronous=False)

    try:
        _when_coordinated(commit, group_id)
    finally:
        consumer.close()


def _when_coordinated(action: Callable[[], None], group_id: str) -> None:
    """Do it as soon as the coordinator is there: on a new cluster it comes a while after its topic."""

    def done() -> bool:
        try:
            action()
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_IS_COMING:
                raise
            return False
        return True

    wait_until(done, what=f"the coordinator of {group_id}", within_s=60)
