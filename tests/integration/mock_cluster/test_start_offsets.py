"""Where a follower of confluent-kafka starts while one broker keeps its connections and answers nothing."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer

from assignor.clients.confluent.offsets import bound_offsets
from tests.support.brokers.mock_cluster import MockCluster
from tests.support.waiting import wait_until

TOPIC = "records"
PLACES = frozenset((TOPIC, number) for number in range(6))


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(3) as cluster:
        cluster.create(TOPIC, 6)
        for number in range(6):
            cluster.lead(TOPIC, number, number % 3 + 1)
        cluster.fill(TOPIC, dict.fromkeys(range(6), 5))
        yield cluster


@pytest.mark.parametrize("silent", [1, 2, 3])
@pytest.mark.parametrize(("earliest", "bound"), [(True, 0), (False, 5)], ids=["beginnings", "ends"])
def test_silent_leader_that_is_asked_apart_does_not_keep_back_the_bounds_that_other_leaders_know(
    cluster: MockCluster, silent: int, earliest: bool, bound: int
) -> None:
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "bounds", "log_level": 0}
    with closing(Consumer(config)) as consumer:
        every = dict.fromkeys(PLACES, bound)
        for in_parts in (False, True):
            found = bound_offsets(consumer, PLACES, earliest=earliest, timeout_s=10, in_parts=in_parts)
            assert found == (every, "")
        cluster.hang(silent)
        answered: list[tuple[dict[tuple[str, int], int], str]] = []

        def asked() -> bool:
            answered.append(bound_offsets(consumer, PLACES, earliest=earliest, timeout_s=1, in_parts=True))
            return bool(answered[-1][0])

        # Not always the first time: a busy machine may need more than its share.
        wait_until(asked, what="bounds", within_s=20)
        cluster.answer(silent)

    found, problem = answered[-1]
    assert found == {key: bound for key in PLACES if key[1] % 3 + 1 != silent}
    assert "Timed out" in problem
