"""Log offsets asked of several brokers, of which one hangs, is down, or has lost a partition."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError
from confluent_kafka.admin import AdminClient, OffsetSpec

from pipeline.kafka.list_offsets.leaders import Leaders
from pipeline.kafka.list_offsets.question import LeaderAnswer, Question
from pipeline.kafka.positions import PartitionKey
from tests.support.brokers.mock_cluster import LIST_OFFSETS, METADATA, MockCluster
from tests.support.waiting import wait_until

TIMEOUT_S = 1.5
ASKS = [
    (OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
]
RECORDS = 7
PARTITIONS: list[PartitionKey] = [("orders", number) for number in range(6)]
OF_BROKER_2 = [("orders", 1), ("orders", 4)]


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as running:
        running.create("orders", len(PARTITIONS))
        running.fill("orders", {number: RECORDS for _, number in PARTITIONS})
        yield running


@pytest.fixture
def leaders(cluster: MockCluster) -> Leaders:
    return Leaders(lambda: AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}))


def asked(
    leaders: Leaders, wanted: list[PartitionKey] = PARTITIONS, timeout_s: float = TIMEOUT_S
) -> dict[PartitionKey, LeaderAnswer]:
    return Question(leaders, ASKS, timeout_s=timeout_s).answers(wanted)


def ends(answers: dict[PartitionKey, LeaderAnswer]) -> list[int | None]:
    """Log end by partition; both offsets are there, or neither and a reason."""
    for answer in answers.values():
        assert (answer.offsets is None) == (answer.error is not None)
    return [end(answers[key]) for key in PARTITIONS]


def end(answer: LeaderAnswer) -> int | None:
    return answer.offsets[-1] if answer.offsets else None


def test_every_leader_answers_for_its_partitions(leaders: Leaders) -> None:
    begun_ms = time.time_ns() // 1_000_000

    answers = asked(leaders)

    assert ends(answers) == [RECORDS] * 6
    assert {answer.offsets for answer in answers.values()} == {(0, RECORDS)}
    assert all(answer.observed_at_ms >= begun_ms for answer in answers.values())


@pytest.mark.parametrize("failure", ["hang", "stop"])
def test_broker_that_does_not_answer_costs_its_own_partitions_and_its_time_once(
    cluster: MockCluster, leaders: Leaders, failure: str
) -> None:
    asked(leaders)
    getattr(cluster, failure)(2)

    begun = time.monotonic()
    answers = asked(leaders)

    assert ends(answers) == [RECORDS, None, RECORDS, RECORDS, None, RECORDS]
    assert time.monotonic() - begun < TIMEOUT_S + 1
    broker = f"broker 2 ({cluster.address(2)})"
    # A connection that breaks early leaves time for a listing, which knows more.
    whys = {f"{broker} does not answer"} | (
        {f"its leader, {broker}, is not among the live brokers"} if failure == "stop" else set()
    )
    assert {answers[key].error for key in OF_BROKER_2} <= whys


def test_many_calls_to_a_broker_that_hangs_wait_together(cluster: MockCluster, leaders: Leaders) -> None:
    cluster.create("large", 9000)
    wanted = [("large", number) for number in range(9000)]
    asked(leaders, wanted, timeout_s=20)
    cluster.hang(2)

    begun = time.monotonic()
    answers = asked(leaders, wanted, timeout_s=3)

    assert time.monotonic() - begun < 3 + 2
    assert sum(answer.error is None for answer in answers.values()) == 6000


def test_broker_that_still_does_not_answer_is_not_waited_for_as_long_again(
    cluster: MockCluster, leaders: Leaders
) -> None:
    asked(leaders)
    cluster.hang(2)
    asked(leaders, timeout_s=3)

    begun = time.monotonic()
    answers = asked(leaders, timeout_s=20)

    # One second for the broker, and a quarter of the time for a listing that meets it.
    assert time.monotonic() - begun < 1 + 5 + 1
    assert ends(answers) == [RECORDS, None, RECORDS, RECORDS, None, RECORDS]


def test_broker_that_answers_again_is_asked_as_before(cluster: MockCluster, leaders: Leaders) -> None:
    asked(leaders)
    cluster.hang(2)
    asked(leaders)
    assert leaders.silent == {2}

    # The mock may send the answer that it held back at once, and that one counts.
    cluster.answer(2)
    assert ends(asked(leaders, timeout_s=10)) == [RECORDS] * 6
    assert leaders.silent == set()


def test_broker_that_answers_late_is_waited_for_as_long_as_before(
    cluster: MockCluster, leaders: Leaders
) -> None:
    asked(leaders, OF_BROKER_2, timeout_s=5)
    # Longer than the second that a silent broker gets.
    cluster.hang(2, seconds=1.3)
    asked(leaders, OF_BROKER_2, timeout_s=0.5)
    assert leaders.silent == {2}

    wait_until(lambda: leaders.silent == set(), what="the late answer")

    answers = asked(leaders, OF_BROKER_2, timeout_s=30)
    assert all(answer.error is None for answer in answers.values())


def test_partition_without_leader_says_so_and_is_right_again_with_the_next_question(
    cluster: MockCluster, leaders: Leaders
) -> None:
    cluster.unlead("orders", 1)
    without = asked(leaders)
    cluster.lead("orders", 1, 3)

    assert without[("orders", 1)].error == "the partition has no leader"
    assert ends(without) == [RECORDS, None, RECORDS, RECORDS, RECORDS, RECORDS]
    assert ends(asked(leaders)) == [RECORDS] * 6


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
    ],
    ids=str,
)
def test_answer_of_an_outdated_leader_renews_leaders_and_is_asked_again(
    cluster: MockCluster, leaders: Leaders, code: int
) -> None:
    asked(leaders)
    for broker in (1, 2, 3):
        cluster.fail_next_of(broker, LIST_OFFSETS, code)
    cluster.watch()

    answers = asked(leaders)

    assert ends(answers) == [RECORDS] * 6
    assert cluster.requests(METADATA) >= 1


def test_moved_leader_is_found_within_one_question(cluster: MockCluster, leaders: Leaders) -> None:
    asked(leaders)
    for _, number in PARTITIONS:
        cluster.lead("orders", number, 3)

    assert ends(asked(leaders)) == [RECORDS] * 6


def test_partition_whose_leader_moved_off_a_broker_that_hangs_is_right_with_the_second_question(
    cluster: MockCluster, leaders: Leaders
) -> None:
    asked(leaders)
    cluster.hang(2)
    for _, number in OF_BROKER_2:
        cluster.lead("orders", number, 3)
    first = asked(leaders)

    assert ends(first) == [RECORDS, None, RECORDS, RECORDS, None, RECORDS]
    assert ends(asked(leaders)) == [RECORDS] * 6


def test_error_that_stays_names_the_broker(cluster: MockCluster, leaders: Leaders) -> None:
    cluster.fail_next(LIST_OFFSETS, *[KafkaError.KAFKA_STORAGE_ERROR] * 12)

    why = asked(leaders)[("orders", 0)].error

    assert why is not None
    assert why.endswith(f"(broker 1 ({cluster.address(1)}))")


def test_refused_user_is_not_asked_twice(cluster: MockCluster, leaders: Leaders) -> None:
    asked(leaders)
    cluster.fail_next(LIST_OFFSETS, *[KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3)
    cluster.watch()

    assert ends(asked(leaders)) == [None] * 6
    assert (cluster.requests(LIST_OFFSETS), cluster.requests(METADATA)) == (3, 0)


def test_partition_that_no_broker_names_is_not_waited_for(leaders: Leaders) -> None:
    answers = asked(leaders, [("orders", 0), ("orders", 6), ("gone", 0)])

    assert [end(answer) for answer in answers.values()] == [None, None, RECORDS]
    assert answers[("gone", 0)].error == "no broker lists this partition"


def test_offset_below_the_one_that_was_answered_before_it_is_no_answer(leaders: Leaders) -> None:
    # The end is asked for first here: the start below it looks like a log that was cut in between.
    answers = Question(leaders, ASKS[::-1], timeout_s=TIMEOUT_S).answers(PARTITIONS)

    assert ends(answers) == [None] * 6
    assert "offset 7, then 0" in str(answers[("orders", 0)].error)


def test_unreachable_cluster_gives_every_partition_a_reason() -> None:
    # Port 9 is discard: nobody listens.
    leaders = Leaders(lambda: AdminClient({"bootstrap.servers": "127.0.0.1:9", "log_level": 0}))

    answers = asked(leaders, timeout_s=0.2)

    assert all(str(answer.error).startswith("leaders are unknown: ") for answer in answers.values())
    assert ends(answers) == [None] * 6


class Recorder:
    """A client that notes the time-outs of its calls for log offsets."""

    def __init__(self, admin: AdminClient, timeouts: list[float]) -> None:
        self._admin = admin
        self._timeouts = timeouts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)

    def list_offsets(self, wanted: Any, *, request_timeout: float, **settings: Any) -> Any:
        self._timeouts.append(request_timeout)
        return self._admin.list_offsets(wanted, request_timeout=request_timeout, **settings)


def test_no_call_has_a_time_out_that_librdkafka_might_not_survive(cluster: MockCluster) -> None:
    timeouts: list[float] = []

    def made() -> Any:
        return Recorder(AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}), timeouts)

    leaders = Leaders(made)
    asked(leaders)
    cluster.hang(2, seconds=0.3)
    begun = time.monotonic()
    asked(leaders, timeout_s=0.2)
    asked(leaders, timeout_s=0.5)

    # A call of 1,500 partitions with 5 ms took the process with it.
    assert min(timeouts) >= 5
    assert time.monotonic() - begun < 3


def test_time_grows_with_the_partitions_and_not_with_their_square() -> None:
    with MockCluster(1) as cluster:
        cluster.create("large", 24_000)
        leaders = Leaders(lambda: AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}))
        wanted = [("large", number) for number in range(24_000)]
        asked(leaders, wanted[:1], timeout_s=30)

        def seconds(partitions: int) -> float:
            begun = time.process_time()
            answers = asked(leaders, wanted[:partitions], timeout_s=60)
            assert all(answer.error is None for answer in answers.values())
            return time.process_time() - begun

        # Asked for in one call, six times the partitions took 17 times as long, each time.
        assert any(seconds(24_000) < 12 * seconds(4_000) for _ in range(3))
