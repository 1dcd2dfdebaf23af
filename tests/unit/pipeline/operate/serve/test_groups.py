"""Figures of groups and members: sums of what is known, and what is in doubt counted beside them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pipeline.tables.stamp import Stamp
from tests.support.operate.prometheus_text import Scrape
from tests.support.operate.table_world import NOON, World

Scraping = Callable[..., Scrape]
GROUP = {"cluster_name": "c", "group": "billing"}


def member(member_id: str, assigned: dict[str, list[int]] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "member_id": member_id,
        "client_id": member_id,
        "assigned": list((assigned or {}).items()),
        **more,
    }


def owned(partition: int, member_id: str, **more: Any) -> dict[str, Any]:
    return {"partition": partition, "member_id": member_id, "client_id": member_id, **more}


def test_sums_are_of_what_is_known_and_the_rest_is_counted(world: World, scrape: Scraping) -> None:
    old = {"log_observed_at": NOON - timedelta(hours=1)}
    world.write(
        "partition_lag",
        {
            "partition": 0,
            "lag": 3,
            "lag_at_commit": 2,
            "lag_seconds": 1.5,
            "arrival_rate": 2.0,
            "drain_rate": 1.0,
            "retention_seconds": 60.5,
        },
        {"partition": 1, "lag": 4, "lag_seconds": 9.5, "lag_seconds_is_lower_bound": True, **old},
        {"partition": 0, "topic": "u", "status": "UNKNOWN", "provisional": True},
    )

    found = scrape()

    assert found.value("kafka_consumergroup_group_sum_lag", **GROUP) == 7
    assert found.value("lagwise_group_lag_at_commit_records", **GROUP) == 2
    assert found.value("kafka_consumergroup_group_max_lag", **GROUP) == 4
    assert found.value("kafka_consumergroup_group_max_lag_seconds", **GROUP) == 9.5
    assert found.value("kafka_consumergroup_group_topic_sum_lag", **GROUP, topic="invoices") == 7
    assert found.value("kafka_consumergroup_lag_sum", consumergroup="billing", topic="invoices") == 7
    assert found.value("kafka_consumergroup_lag_sum", consumergroup="billing", topic="u") is None
    assert found.value("lagwise_group_arrival_records_per_second", **GROUP) == 2
    assert found.value("lagwise_group_drain_records_per_second", **GROUP) == 1
    doubts = found.of("lagwise_group_doubtful_partitions")
    assert {dict(labels)["why"]: count for labels, count in doubts.items()} == {
        "lag_unknown": 1,
        "lag_at_commit_unknown": 2,
        "lag_seconds_unknown": 1,
        "lag_seconds_lower_bound": 1,
        "log_end_old": 1,
        "provisional": 1,
        "rate_unknown": 2,
        "retention_unknown": 2,
    }
    assert found.value("lagwise_group_retention_seconds", **GROUP) == 60.5
    assert found.value("lagwise_group_partitions", **GROUP, status="OK") == 2
    assert found.value("lagwise_group_partitions", **GROUP, status="UNKNOWN") == 1
    assert found.value("lagwise_group_provisional", **GROUP) == 1


def test_age_0_at_an_old_log_end_counts_as_a_lower_bound(world: World, scrape: Scraping) -> None:
    read = {"lag": 0, "lag_seconds": 0.0, "lag_seconds_is_lower_bound": False}
    world.write(
        "partition_lag",
        {"partition": 0, **read, "log_observed_at": NOON - timedelta(hours=1)},
        {"partition": 1, **read, "log_observed_at": NOON},
    )

    doubts = scrape().of("lagwise_group_doubtful_partitions")

    counts = {dict(labels)["why"]: count for labels, count in doubts.items()}
    assert (counts["lag_seconds_lower_bound"], counts["retention_unknown"]) == (1, 1)


def test_lag_at_commit_has_no_sample_where_no_samples_of_the_log_tell_it(
    world: World, scrape: Scraping
) -> None:
    world.write("partition_lag", {"lag": 9}, {"lag": 5, "lag_at_commit": 0, "group_id": "keeps-up"})

    found = scrape().of("lagwise_group_lag_at_commit_records")

    assert {dict(labels)["group"]: lag for labels, lag in found.items()} == {"keeps-up": 0}


def test_retention_has_no_sample_where_nothing_is_unread_or_nobody_knows(
    world: World, scrape: Scraping
) -> None:
    world.write("partition_lag", {"lag": 0}, {"lag": 5, "group_id": "unknown"})

    found = scrape()

    assert found.of("lagwise_group_retention_seconds") == {}
    doubts = found.of("lagwise_group_doubtful_partitions")
    assert {
        dict(labels)["group"]: count
        for labels, count in doubts.items()
        if dict(labels)["why"] == "retention_unknown"
    } == {"billing": 0, "unknown": 1}


def test_members_are_counted_where_kafka_says_who_they_are(world: World, scrape: Scraping) -> None:
    world.write(
        "consumer_groups",
        {"members": [member("a"), member("b")], "generation": 4},
        {"group_id": "empty", "members": []},
        {"group_id": "new", "group_type": "consumer", "members": []},
    )

    found = scrape()

    assert {dict(k)["group"]: v for k, v in found.of("lagwise_group_members").items()} == {
        "billing": 2,
        "empty": 0,
    }
    exported = found.of("kafka_consumergroup_members")
    assert {dict(k)["consumergroup"]: v for k, v in exported.items()} == {"billing": 2, "empty": 0}
    assert found.value("lagwise_group_generation", **GROUP) == 4
    assert len(found.of("lagwise_group_generation")) == 1


def test_idle_member_owns_nothing_not_even_of_a_topic_that_is_left_out(
    world: World, scrape: Scraping
) -> None:
    given = {"invoices": [0]}
    members = [
        member("owner"),
        member("gave-away", given),
        member("elsewhere", {"secret": [1]}),
        member("idle"),
    ]
    world.write("consumer_groups", {"members": members})
    world.write("partition_lag", owned(0, "owner", lag=1))

    assert scrape().value("lagwise_group_members_idle", **GROUP) == 2


def test_member_that_is_behind_its_target_beyond_its_rebalance_timeout_is_stuck(
    world: World, scrape: Scraping
) -> None:
    progress: dict[str, Any] = {
        "member_epoch": 3,
        "target": [],
        "pending_revocation": [("invoices", [1])],
        "rebalance_timeout_ms": 60_000,
        "unresolved_topic_ids": [],
    }
    late = [
        progress | {"member_id": "stuck", "behind_since": NOON - timedelta(seconds=61)},
        progress | {"member_id": "late", "behind_since": NOON - timedelta(seconds=59)},
        progress | {"member_id": "there", "behind_since": None},
    ]
    members = [member(row["member_id"]) for row in late]
    world.write(
        "consumer_groups",
        {"group_type": "consumer", "members": members, "reconciliation": late},
        {"group_id": "classic", "members": [member("a")], "reconciliation": None},
    )
    world.write(
        "partition_lag",
        owned(0, "stuck", lag=1),
        stamp=Stamp(batch_id=1, at_ms=round(NOON.timestamp() * 1000)),
    )

    found = scrape()

    assert found.value("lagwise_group_members_stuck", **GROUP) == 1
    assert len(found.of("lagwise_group_members_stuck")) == 1


def test_skew_counts_members_without_lag(world: World, scrape: Scraping) -> None:
    world.write("consumer_groups", {"members": [member("a"), member("b"), member("idle")]})
    world.write("partition_lag", owned(0, "a", lag=30), owned(1, "a", lag=30), owned(2, "b", lag=40))

    assert scrape().value("lagwise_group_lag_skew", **GROUP) == 0.6


def test_skew_is_unknown_while_a_lag_is(world: World, scrape: Scraping) -> None:
    world.write("consumer_groups", {"members": [member("a"), member("b")]})
    world.write("partition_lag", owned(0, "a", lag=30), owned(1, "b"))

    assert scrape().value("lagwise_group_lag_skew", **GROUP) is None


def test_skew_is_unknown_while_a_member_has_partitions_without_rows(world: World, scrape: Scraping) -> None:
    world.write("consumer_groups", {"members": [member("a"), member("b", {"secret": [1]})]})
    world.write("partition_lag", owned(0, "a", lag=30))

    assert scrape().value("lagwise_group_lag_skew", **GROUP) is None


def test_capacity_is_what_the_owners_have_shown(world: World, scrape: Scraping) -> None:
    members = [member("a", group_instance_id="one"), member("b"), member("idle")]
    world.write("consumer_groups", {"members": members})
    world.write("partition_lag", owned(0, "a", arrival_rate=150.0), owned(1, "b", arrival_rate=42.0))
    rates = {"rate": 1.0, "seen_at": NOON}
    world.write("member_rates", {"identity": "instance one", "shown_rate": 60.0, **rates})
    before = scrape()
    world.write("member_rates", {"identity": "client b", "shown_rate": 40.0, **rates})

    assert before.value("lagwise_group_capacity_ratio", **GROUP) is None
    assert scrape().value("lagwise_group_capacity_ratio", **GROUP) == 1.92


def test_capacity_of_owners_is_not_the_groups_while_an_idle_member_could_share_their_partitions(
    world: World, scrape: Scraping
) -> None:
    rates = {"identity": "client a", "shown_rate": 80.0, "rate": 1.0, "seen_at": NOON}
    both = [owned(number, "a", arrival_rate=50.0) for number in (0, 1)]
    alone = {"group_id": "alone"}
    world.write(
        "consumer_groups", {"members": [member("a"), member("idle")]}, {"members": [member("a")], **alone}
    )
    world.write("partition_lag", *both, *(row | alone for row in both))
    world.write("member_rates", rates, rates | alone)

    found = scrape()

    assert found.value("lagwise_group_capacity_ratio", **GROUP) is None
    assert found.value("lagwise_group_capacity_ratio", **GROUP | {"group": "alone"}) == 1.25


@pytest.mark.parametrize(
    ("arrival_rate", "topics", "expected"),
    [(50.0, ["other"], 1.25), (50.0, None, None), (50.0, ["invoices"], None), (200.0, ["invoices"], 2.5)],
    ids=["may read none of them", "may read unknown topics", "could help", "could not help enough"],
)
def test_idle_member_hides_an_overload_only_if_it_could_end_it(
    world: World, scrape: Scraping, arrival_rate: float, topics: list[str] | None, expected: float | None
) -> None:
    world.write("consumer_groups", {"members": [member("a"), member("idle", topics=topics)]})
    world.write("partition_lag", *(owned(number, "a", arrival_rate=arrival_rate) for number in (0, 1)))
    world.write("member_rates", {"identity": "client a", "shown_rate": 80.0, "rate": 1.0, "seen_at": NOON})

    assert scrape().value("lagwise_group_capacity_ratio", **GROUP) == expected


def test_capacity_is_unknown_while_a_member_has_partitions_without_rows(
    world: World, scrape: Scraping
) -> None:
    world.write("consumer_groups", {"members": [member("a", {"secret": [1]})]})
    world.write("partition_lag", owned(0, "a", arrival_rate=50.0))
    world.write("member_rates", {"identity": "client a", "shown_rate": 80.0, "rate": 1.0, "seen_at": NOON})

    assert scrape().value("lagwise_group_capacity_ratio", **GROUP) is None


def test_members_with_the_same_labels_add_up(world: World, scrape: Scraping) -> None:
    shared = {"client_id": "app", "client_host": "/h"}
    world.write(
        "partition_lag",
        {"partition": 0, "member_id": "app-1", "lag": 3, "drain_rate": 1.5, **shared},
        {"partition": 1, "member_id": "app-2", "lag": 4, **shared},
        {"partition": 2, "lag": 100},
    )

    found = scrape()

    labels = frozenset({**GROUP, "client_id": "app", "member_host": "/h"}.items())
    assert found.of("lagwise_member_lag_records") == {labels: 7}
    assert found.of("lagwise_member_drain_records_per_second") == {labels: 1.5}
