"""Lag and offsets under the names of two exporters: what the table says, and nothing where it says nothing."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.tables.stamp import Stamp
from tests.support.operate.prometheus_text import Scrape, parse
from tests.support.operate.table_world import NOON, World

Scraping = Callable[..., Scrape]

HOSTILE = (
    'say "hi"',
    "back\\slash",
    "back\\n",
    "two\nlines",
    "</script>",
    '{a="b"} 1',
    "ü\u2028\r\t",
    "\\",
    '"',
    " ",
    "\0",
)
ROWS: list[dict[str, Any]] = [
    {"partition": 0, "lag": 0, "lag_seconds": 0.0, "committed_offset": 10},
    {"partition": 1, "lag": 2**53, "lag_seconds": 0.1 + 0.2, "committed_offset": 2**40},
    {"partition": 2, "lag": 7, "committed_offset": 1, "status": "UNKNOWN"},
    {"partition": 3, "status": "NOT_COMMITTED"},
    {
        "partition": 0,
        "group_id": "other",
        "lag": 5,
        "lag_seconds": 1e-7,
        "committed_offset": 3,
        "client_id": "a",
    },
]


def of_partition(row: dict[str, Any]) -> dict[str, str]:
    return {"topic": row["topic"], "partition": str(row["partition"])}


def seglo(row: dict[str, Any]) -> dict[str, str]:
    owner = {"client_id": row["client_id"], "member_host": row["client_host"]}
    named = {label: name for label, name in owner.items() if name is not None}
    return {"cluster_name": row["cluster"], "group": row["group_id"], **of_partition(row), **named}


def assert_equal_to_the_command(world: World, found: Scrape) -> None:
    """Every value is that of `lagwise lag`; there are no others."""
    rows = json.loads(world.run("lag", "-o", "json").stdout)
    for family, labels, column in (
        ("kafka_consumergroup_group_lag", seglo, "lag"),
        ("kafka_consumergroup_group_lag_seconds", seglo, "lag_seconds"),
        ("kafka_consumergroup_group_offset", seglo, "committed_offset"),
        ("kafka_consumergroup_lag", lambda r: {"consumergroup": r["group_id"], **of_partition(r)}, "lag"),
        (
            "kafka_consumergroup_current_offset",
            lambda r: {"consumergroup": r["group_id"], **of_partition(r)},
            "committed_offset",
        ),
    ):
        expected = {frozenset(labels(row).items()): row[column] for row in rows if row[column] is not None}
        assert found.of(family) == expected


def test_every_value_is_that_of_the_command(world: World, scrape: Scraping) -> None:
    world.write("partition_lag", *ROWS)

    assert_equal_to_the_command(world, scrape())


def test_names_that_quote_and_break_lines_come_back_as_they_are(world: World, scrape: Scraping) -> None:
    world.write(
        "partition_lag",
        *(
            {
                "group_id": name,
                "topic": "t",
                "client_id": name,
                "client_host": name,
                "lag": number,
                "lag_seconds": 1.0,
            }
            for number, name in enumerate(HOSTILE)
        ),
    )

    found = scrape()

    assert_equal_to_the_command(world, found)
    assert {dict(labels)["group"] for labels in found.of("kafka_consumergroup_group_lag")} == set(HOSTILE)


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, -1.0])
def test_unknown_is_no_sample(world: World, scrape: Scraping, unknown: float | None) -> None:
    world.write("partition_lag", {"lag": None, "lag_seconds": unknown})

    found = scrape()

    assert not found.of("kafka_consumergroup_group_lag")
    assert not found.of("kafka_consumergroup_group_lag_seconds")
    assert not found.of("kafka_consumergroup_group_sum_lag")
    assert all(math.isfinite(value) and value >= 0 for value in found.values.values())


def test_offsets_of_topics_are_those_of_their_table(world: World, scrape: Scraping) -> None:
    world.write(
        "topic_offsets",
        {"topic": "t", "partition": 1, "log_start_offset": 3, "log_end_offset": 9},
        {"topic": "t", "partition": 0},
        {"topic": "gone", "log_start_offset": 3, "log_end_offset": 9, "deleted_at": 0},
    )

    found = scrape()

    seglo_labels = {"cluster_name": "c", "topic": "t", "partition": "1"}
    assert found.of("kafka_partition_latest_offset") == {frozenset(seglo_labels.items()): 9}
    assert found.of("kafka_partition_earliest_offset") == {frozenset(seglo_labels.items()): 3}
    assert found.value("kafka_topic_partition_current_offset", topic="t", partition="1") == 9
    assert found.value("kafka_topic_partition_oldest_offset", topic="t", partition="1") == 3
    assert found.of("kafka_topic_partitions") == {frozenset({("topic", "t")}): 2}


def test_deleted_group_is_gone_at_the_next_scrape_and_a_stopped_one_grows(world: World, scraper: Any) -> None:
    world.write("partition_lag", {"lag": 5, "member_id": "m"}, {"group_id": "deleted", "lag": 1})
    world.write("plan_state", {"recorded_at": NOON}, {"group_id": "deleted", "recorded_at": NOON})
    running = scraper()
    before = parse(running.page().plain(b"").decode())
    world.replace("partition_lag", {"lag": 9, "status": "STOP"})

    after = parse(running.page().plain(b"").decode())

    labels = {"consumergroup": "billing", "topic": "invoices", "partition": "0"}
    assert before.value("kafka_consumergroup_lag", **labels) == 5
    assert after.value("kafka_consumergroup_lag", **labels) == 9
    assert any("deleted" in dict(labels).values() for _, labels in before.values)
    assert after.value("lagwise_plan_state", cluster_name="c", group="billing", state="none") == 1
    assert not any("deleted" in dict(labels).values() for _, labels in after.values)


def test_member_id_is_a_label_only_on_request(world: World, scrape: Scraping) -> None:
    world.write("partition_lag", {"lag": 5, "member_id": "m-1", "client_id": "m", "client_host": "/h"})

    (plain,) = scrape().of("kafka_consumergroup_group_lag")
    (full,) = scrape(member_labels="full").of("kafka_consumergroup_group_lag")

    assert full - plain == {("consumer_id", "m-1")}
    assert dict(plain)["client_id"] == "m"


def test_family_that_nobody_wants_is_left_out(world: World, scrape: Scraping) -> None:
    world.write("partition_lag", {"lag": 5})
    world.write("topic_offsets", {"log_end_offset": 5})
    world.write("consumer_groups", {"members": []})

    def names(**families: Any) -> set[str]:
        return {name for name in scrape(**families).kinds if name.startswith("kafka_")}

    seglo_names, exporter_names = names(families=("seglo",)), names(families=("kafka_exporter",))

    assert not seglo_names & exporter_names
    assert seglo_names | exporter_names == names()
    assert not names(families=())


def test_leaders_and_replicas_are_those_of_the_metadata_and_unknown_without(
    world: World, scrape: Scraping
) -> None:
    kept = {"topic": "t", "preferred_leader": 1, "replicas": 3}
    world.write(
        "topic_offsets",
        {**kept, "partition": 0, "leader_broker": 1, "in_sync_replicas": 3},
        {**kept, "partition": 1, "leader_broker": 2, "in_sync_replicas": 2},
        {**kept, "partition": 2, "leader_broker": None, "in_sync_replicas": 1},
        {"topic": "t", "partition": 3},
    )
    world.write("partition_lag", {"lag": 1}, stamp=Stamp(batch_id=1, at_ms=1, brokers=3))

    found = scrape()

    def by_partition(name: str) -> list[float | None]:
        family = f"kafka_topic_partition_{name}"
        return [found.value(family, topic="t", partition=str(number)) for number in range(4)]

    assert by_partition("leader") == [1, 2, None, None]
    assert by_partition("leader_is_preferred") == [1, 0, 0, None]
    assert by_partition("replicas") == [3, 3, 3, None]
    assert by_partition("in_sync_replica") == [3, 2, 1, None]
    assert by_partition("under_replicated_partition") == [0, 1, 1, None]
    assert found.value("kafka_brokers", cluster_name="c") == 3


def test_brokers_are_unknown_when_the_batch_had_no_listing(world: World, scrape: Scraping) -> None:
    world.write("partition_lag", {"lag": 1}, stamp=Stamp(batch_id=1, at_ms=1))

    assert not scrape().of("kafka_brokers")
