"""What the tables say equals what Kafka's own ConsumerGroupCommand prints, for two dozen live groups of all kinds.

And by its word the zoo holds what it promises, so that nothing is compared with nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from pipeline.run.batch.steps import run
from tests.support.brokers import kafka_tools
from tests.support.brokers.broker import old_kafka, small_broker
from tests.support.brokers.kafka_tools import MemberRow, OffsetRow, StateRow
from tests.support.groups.groups_zoo import Zoo, zoo
from tests.support.groups.zoo_kinds import KINDS, Commits
from tests.support.job.job import RunningJob, job_config, running


class Truth(NamedTuple):
    """A paused zoo, a job that has seen the end of its traffic, and what the tool printed when the job had ended."""

    bootstrap: str
    animals: Zoo
    job: RunningJob
    before: tuple[OffsetRow, ...]
    """What the tool printed before the job's last batch."""
    offsets: tuple[OffsetRow, ...]
    members: tuple[MemberRow, ...]
    states: tuple[StateRow, ...]


_CLASSIC_ONLY = tuple(kind for kind in KINDS if kind.group_type == "Classic")


@contextmanager
def _of_today() -> Iterator[tuple[str, Zoo]]:
    with small_broker() as broker, zoo(broker.bootstrap_servers) as animals:
        yield broker.bootstrap_servers, animals


@contextmanager
def _of_3_9() -> Iterator[tuple[str, Zoo]]:
    """Its coordinator is the one before KIP-848, which 3.9 has as a preview that is off."""
    with old_kafka(), small_broker() as broker, zoo(broker.bootstrap_servers, _CLASSIC_ONLY) as animals:
        yield broker.bootstrap_servers, animals


@pytest.fixture(scope="module", params=[_of_today, _of_3_9], ids=["kafka-4.2", "kafka-3.9"])
def truth(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Truth]:
    with request.param() as (bootstrap, animals):
        config = job_config(bootstrap, tmp_path_factory.mktemp("tables"))
        with running(config, run_batch=run) as job:
            animals.pause_traffic()
            before = kafka_tools.describe_offsets(bootstrap)
            job.wait_for_batches()
        yield Truth(
            bootstrap=bootstrap,
            animals=animals,
            job=job,
            before=before,
            offsets=kafka_tools.describe_offsets(bootstrap),
            members=kafka_tools.describe_members(bootstrap),
            states=kafka_tools.describe_states(bootstrap),
        )


def test_every_row_is_the_tools(truth: Truth) -> None:
    assert len({row.group_id for row in truth.offsets}) >= len(_CLASSIC_ONLY)
    assert {_as_printed(row) for row in truth.job.rows("partition_lag")} == set(truth.offsets)


def test_no_row_is_provisional_or_older_than_the_pause(truth: Truth) -> None:
    rows = truth.job.rows("partition_lag")

    assert not any(row["provisional"] for row in rows)
    assert len({row["updated_at"] for row in rows}) == 1


def test_lag_is_the_tools_where_it_is_not_negative(truth: Truth) -> None:
    printed = {(row.group_id, row.topic, row.partition): row.lag for row in truth.offsets}

    lags = {
        (row["group_id"], row["topic"], row["partition"]): row["lag"]
        for row in truth.job.rows("partition_lag")
    }

    assert all(lag == printed[key] for key, lag in lags.items())
    assert None in lags.values()
    assert 0 in lags.values()
    assert any(lag for lag in lags.values())


def test_lag_at_commit_is_at_most_the_tools_lag_and_0_for_who_has_committed_all(truth: Truth) -> None:
    rows = truth.job.rows("partition_lag")
    known = [row for row in rows if row["lag_at_commit"] is not None]

    assert all(0 <= row["lag_at_commit"] <= row["lag"] for row in known)
    # Who is at the end of the log was there when it committed, and no samples are needed to tell.
    ended = [row for row in rows if row["raw_lag"] == 0]
    assert ended
    assert {row["lag_at_commit"] for row in ended} == {0}
    assert all(row["lag_at_commit"] is None for row in rows if row["committed_offset"] is None)


def test_commits_of_aborted_transactions_do_not_show(truth: Truth) -> None:
    rows = truth.job.lags("zoo-transactional-aborted")

    # Only its first transaction was committed, and it has gone on reading since. A partition that it had not read
    # by then is assigned without a commit.
    committed = [row for row in rows.values() if row["committed_offset"] is not None]
    assert committed
    assert all(row["committed_offset"] < row["log_end_offset"] for row in committed)


def test_groups_are_the_tools(truth: Truth) -> None:
    kinds = truth.animals.kinds
    states = {row.group_id: row for row in truth.states}

    groups = {row["group_id"]: row for row in truth.job.rows("consumer_groups")}

    # Groups of assign() users have no group record, and show by their commits alone.
    assert groups.keys() == {name for name, kind in kinds.items() if kind.subscribes}
    for name, group in groups.items():
        assert group["group_type"] == kinds[name].group_type.lower()
        assert (group["state"], len(group["members"])) == (states[name].state, states[name].members)
        if kinds[name].group_type == "Classic":
            assert group["assignor"] == states[name].assignor
        else:
            # The tool names the broker's default where no member asks for an assignor.
            assert (group["generation"], group["target_epoch"]) == (
                states[name].group_epoch,
                states[name].target_epoch,
            )


def test_members_are_the_tools(truth: Truth) -> None:
    printed = {
        (row.group_id, row.member_id, row.group_instance_id, row.host, row.client_id, row.partitions)
        for row in truth.members
    }

    errors = [
        member["error"] for group in truth.job.rows("consumer_groups") for member in group["members"] or ()
    ]
    members = {
        (
            group["group_id"],
            member["member_id"],
            member["group_instance_id"],
            member["client_host"],
            member["client_id"],
            sum(len(numbers) for _, numbers in member["assigned"] or ()),
        )
        for group in truth.job.rows("consumer_groups")
        for member in group["members"] or ()
    }

    assert len(printed) >= 20
    assert [error for error in errors if error is not None] == []
    assert members == printed


def test_offsets_are_the_same_in_two_calls_after_the_pause(truth: Truth) -> None:
    assert truth.before == truth.offsets
    assert {row.group_id for row in truth.offsets} == truth.animals.kinds.keys()
    assert len(KINDS) >= 20
    assert any(row.lag for row in truth.offsets)
    assert any(row.lag == 0 for row in truth.offsets)


def test_groups_that_never_commit_show_no_committed_offset(truth: Truth) -> None:
    kinds = truth.animals.kinds

    never = {name for name, kind in kinds.items() if kind.commits is Commits.NEVER}
    uncommitted = {row.group_id for row in truth.offsets if row.committed_offset is None and row.member_id}
    committed = {row.group_id for row in truth.offsets if row.committed_offset is not None}
    assert never
    assert never <= uncommitted
    assert committed == kinds.keys() - never


def test_type_and_state_of_each_group_are_those_of_its_kind(truth: Truth) -> None:
    listed = {row.group_id: (row.group_type, row.state) for row in kafka_tools.list_groups(truth.bootstrap)}

    kinds = truth.animals.kinds
    assert listed == {name: (kind.group_type, kind.state) for name, kind in kinds.items()}


def test_assignor_and_members_of_each_group_are_those_of_its_kind(truth: Truth) -> None:
    stable = {name: kind for name, kind in truth.animals.kinds.items() if kind.state == "Stable"}

    shown = {row.group_id: (row.assignor, row.members) for row in truth.states}

    assert {name: shown[name] for name in stable} == {
        name: (kind.assignor, kind.members) for name, kind in stable.items()
    }
    assert {name for name, (_, members) in shown.items() if members} == stable.keys()
    assert shown.keys() == truth.animals.kinds.keys()


def test_every_partition_of_a_subscription_has_one_member(truth: Truth) -> None:
    for name, kind in truth.animals.kinds.items():
        members = [row for row in truth.members if row.group_id == name]
        assert sum(row.partitions for row in members) == (kind.partitions if kind.state == "Stable" else 0)
        assert all((row.group_instance_id is not None) == kind.static for row in members)


def _as_printed(row: dict[str, object]) -> OffsetRow:
    names = ("group_id", "topic", "partition", "committed_offset", "log_end_offset", "member_id", "client_id")
    return OffsetRow(**{name: row[name] for name in names}, host=row["client_host"], lag=row["raw_lag"])
