"""Three brokers, of which clients cannot reach one, or of which one has lost what it knew: nothing false is shown.

Topics and groups are placed so that broker 1 is healthy for all that the job needs to go on, and broker 2 or 3 lead
what is to be lost. Commits are put into the offsets topic past the proxies, so the truth is known at any time.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.brokers.broker import OFFSETS_TOPIC, create_topics, produce
from tests.support.brokers.cluster import ProxiedCluster, create_replicated_topics, proxied_cluster
from tests.support.brokers.inject import commit_record, inject, offsets_partition
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import Row, RunningJob, eager_plan, job_config, running

ORDERS = "orders"
TRIGGER_S, TIMEOUT_S = 1, 5
HEALTHY_WITHIN_S = 3 * TRIGGER_S + 15
_PLACED = {
    OFFSETS_TOPIC: [[1], [2], [3], [1]],
    "__transaction_state": [[1], [1]],
    "lagwise.assignments": [[1]],
    "lagwise.acks": [[1]],
    "lagwise.commands": [[1]],
}


def group_in(partition: int) -> str:
    """A group whose records are in that partition of the offsets topic."""
    return next(name for i in range(1000) if offsets_partition(name := f"group-{i}") == partition)


ON_1, ON_2, ON_3 = group_in(0), group_in(1), group_in(2)


@pytest.fixture(scope="module")
def proxied() -> Iterator[ProxiedCluster]:
    with proxied_cluster() as made:
        create_replicated_topics(made.cluster.internal_servers, _PLACED, cleanup_policy="compact")
        create_replicated_topics(made.cluster.internal_servers, {ORDERS: [[1], [2], [3]]})
        produce(made.cluster.internal_servers, ORDERS, {0: 100, 1: 100, 2: 100})
        yield made


@pytest.fixture(scope="module")
def job(proxied: ProxiedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningJob]:
    config = job_config(
        proxied.cluster.bootstrap_servers,
        tmp_path_factory.mktemp("failures") / "tables",
        plan=eager_plan(dry_run=False, max_staleness_s=3600),
    )
    for name in (ON_1, ON_2, ON_3):
        busy = member("busy", ORDERS, assigned={ORDERS: (0, 1, 2)})
        inject(
            proxied.cluster.internal_servers,
            [group_record(name, busy), *(commit_record(name, ORDERS, p, 10) for p in range(3))],
        )
    with running(config, rests=False) as started:
        started.wait(lambda: all(is_final(started, g) for g in (ON_1, ON_2, ON_3)), what="all rows final")
        yield started


def is_final(job: RunningJob, group: str) -> bool:
    rows = job.lags(group).values()
    return len(rows) == 3 and not any(row["provisional"] for row in rows)


def lag_of(job: RunningJob, group: str, partition: int) -> Any:
    return job.lags(group)[ORDERS, partition]["lag"]


def commit(proxied: ProxiedCluster, group: str, partition: int, offset: int) -> None:
    inject(proxied.cluster.internal_servers, [commit_record(group, ORDERS, partition, offset)])


def test_healthy_partitions_go_on_and_the_others_are_marked_while_a_broker_is_a_black_hole(
    proxied: ProxiedCluster, job: RunningJob
) -> None:
    before = job.lags(ON_1)
    produce(proxied.cluster.internal_servers, ORDERS, {1: 50})
    proxied.proxies[2].black_hole()
    try:
        commit(proxied, ON_1, 0, 60)
        commit(proxied, ON_2, 0, 70)
        begun = time.monotonic()

        job.wait(lambda: lag_of(job, ON_1, 0) == 40, what="the lag of a healthy group")
        job.wait(lambda: not is_final(job, ON_2), what="the mark of the others")
        reached_s = time.monotonic() - begun

        job.wait_for_batches(2)
        # Brokers of a busy machine that are well may miss a time-out as well, for a batch.
        job.wait(lambda: _rows_say_what_is_known(job, before), what="rows that say what is known")
        job.wait(lambda: _reason_names_the_broker(proxied, job), what="a reason that names the broker")
        for group in (ON_1, ON_2):
            decision = job.last_decision(group)
            assert decision["decision"] == "abstain", decision["reason"]
        assert reached_s < 4 * HEALTHY_WITHIN_S
        assert max(report.seconds for report in job.reports[-2:]) < 4 * HEALTHY_WITHIN_S
    finally:
        proxied.proxies[2].forward()
    job.wait(lambda: is_final(job, ON_2) and lag_of(job, ON_2, 0) == 30, what="the commit made meanwhile")
    job.wait(lambda: lag_of(job, ON_1, 1) == 140, what="the log end that nobody could ask for")


def _rows_say_what_is_known(job: RunningJob, before: dict[tuple[str, int], Row]) -> bool:
    healthy, blind = job.lags(ON_1), job.lags(ON_2)[ORDERS, 0]
    # Broker 2 leads this partition: its end keeps its last value, and its age shows.
    asked, now = healthy[ORDERS, 1], healthy[ORDERS, 0]
    assert asked["lag"] == before[ORDERS, 1]["lag"] == 90
    assert (blind["committed_offset"], blind["provisional"]) == (10, True)
    return asked["log_observed_at"] < now["log_observed_at"] and is_final(job, ON_1) and is_final(job, ON_3)


def _reason_names_the_broker(proxied: ProxiedCluster, job: RunningJob) -> bool:
    address = f"127.0.0.1:{proxied.proxies[2].port}"
    return f"broker 2 ({address}) does not answer: partition 1" in (job.reports[-1].stamp.reason or "")


def test_group_whose_coordinator_was_frozen_catches_up_by_itself(
    proxied: ProxiedCluster, job: RunningJob
) -> None:
    proxied.cluster.node(3).pause()
    try:
        job.wait(lambda: not is_final(job, ON_3), what="the mark")
        assert lag_of(job, ON_3, 0) >= 90
        commit(proxied, ON_1, 0, 80)
        job.wait(lambda: lag_of(job, ON_1, 0) == 20, what="a healthy group")
    finally:
        proxied.cluster.node(3).resume()
    commit(proxied, ON_3, 0, 100)

    job.wait(lambda: is_final(job, ON_3) and lag_of(job, ON_3, 0) == 0, what="the group to be right again")


def test_topics_added_meanwhile_are_seen_at_once(proxied: ProxiedCluster, job: RunningJob) -> None:
    create_topics(proxied.cluster.internal_servers, {"late": 1})
    produce(proxied.cluster.internal_servers, "late", {0: 7})
    # Of a group of its own: the other tests count the rows of theirs.
    inject(proxied.cluster.internal_servers, [commit_record("latecomer", "late", 0, 3)])

    job.wait_for_batches(2)

    assert job.lags("latecomer")["late", 0]["lag"] == 4
