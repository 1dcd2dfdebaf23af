"""Transactions on the offsets topic: aborted ones never show, and one that hangs holds back its own partition only."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from pipeline.config.model import StartConfig
from pipeline.planning.reasons import DRY_RUN, NO_MEMBERS
from tests.support.brokers.broker import (
    OFFSETS_PARTITIONS,
    create_offsets_topic,
    create_topics,
    produce,
    small_broker,
)
from tests.support.brokers.inject import (
    commit_in_transaction,
    commit_record,
    inject,
    offsets_partition,
    open_transaction,
)
from tests.support.groups.group_records import lopsided_group
from tests.support.job.job import RunningJob, health_of, job_config, running

ORDERS = "orders"
END = 20
HELD = "held"
HELD_PARTITION = offsets_partition(HELD)
FREE = next(f"free-{n}" for n in range(100) if offsets_partition(f"free-{n}") != HELD_PARTITION)


class Hanging(NamedTuple):
    """A job whose start-up deadline has passed while a transaction is open, and the key to end that."""

    job: RunningJob
    bootstrap: str
    transaction: ExitStack


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hanging]:
    with small_broker() as broker, ExitStack() as transaction:
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        create_topics(bootstrap, {ORDERS: 3})
        produce(bootstrap, ORDERS, dict.fromkeys(range(3), END))
        inject(bootstrap, [record for group in (HELD, FREE) for record in lopsided_group(group, ORDERS)])
        commit_in_transaction(bootstrap, HELD, {(ORDERS, 1): 5}, commit=True)
        commit_in_transaction(bootstrap, HELD, {(ORDERS, 1): 9}, commit=False)
        transaction.enter_context(open_transaction(bootstrap, HELD, {(ORDERS, 2): 7}))
        inject(bootstrap, [commit_record(HELD, ORDERS, 0, 6), commit_record(FREE, ORDERS, 0, 6)])
        config = job_config(bootstrap, tmp_path_factory.mktemp("tables"), start=StartConfig(deadline_s=1))
        with running(config) as job:
            job.wait(lambda: job.reports[-1].is_overdue, what="the start-up deadline")
            job.wait_for_batches()
            yield Hanging(job, bootstrap, transaction)


def test_hanging_transaction(hanging: Hanging) -> None:
    """One test in three acts, since the second changes what the first looks at."""
    _assert_only_its_partition_waits(hanging)
    _assert_the_others_are_planned(hanging)

    hanging.transaction.close()
    hanging.job.wait(lambda: hanging.job.reports[-1].is_complete, what="the partition read to its end")
    hanging.job.wait_for_batches()

    _assert_nothing_was_lost_or_aborted_shown(hanging)


def _assert_only_its_partition_waits(hanging: Hanging) -> None:
    report = hanging.job.reports[-1]
    held, free = hanging.job.lags(HELD), hanging.job.lags(FREE)

    assert not report.is_complete
    assert f"1 of {OFFSETS_PARTITIONS} partitions" in str(report.stamp.reason)
    assert f"{HELD_PARTITION} (" in str(report.stamp.reason)
    assert "open transaction" in str(report.stamp.reason)
    assert _committed(held) == {0: 2, 1: 5}
    assert all(row["provisional"] for row in held.values())
    assert _committed(free) == {0: 6}
    assert not any(row["provisional"] for row in free.values())
    assert any("provisional" in line for line in hanging.job.messages)
    hanging.job.wait(lambda: health_of(hanging.job).is_ready, what="a heartbeat after the deadline")
    health = health_of(hanging.job)
    assert health.state == "warning"
    assert "open transaction" in health.reasons[0]


def _assert_the_others_are_planned(hanging: Hanging) -> None:
    held, free = (hanging.job.last_decision(group) for group in (HELD, FREE))

    assert held["decision"] == "abstain"
    assert held["reason"].startswith("provisional")
    assert f"{HELD_PARTITION} (" in held["reason"]
    assert free["decision"] == "dry_run"


def _assert_nothing_was_lost_or_aborted_shown(hanging: Hanging) -> None:
    held = hanging.job.lags(HELD)

    assert _committed(held) == {0: 6, 1: 5}
    assert not any(row["provisional"] for row in held.values())
    # It may be planned again. With which members depends on the coordinator: it may have written the group that it
    # knows, an empty one, or have read what was injected.
    assert hanging.job.last_decision(HELD)["reason"] in {NO_MEMBERS, DRY_RUN}


def _committed(rows: dict[tuple[str, int], dict[str, Any]]) -> dict[int, int]:
    """Offset by partition; partitions that are assigned and were never committed left out."""
    offsets = {number: row["committed_offset"] for (_, number), row in rows.items()}
    return {number: offset for number, offset in offsets.items() if offset is not None}
