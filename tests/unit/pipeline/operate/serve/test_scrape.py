"""How much a scrape holds, when it is made anew, and how it is packed."""

import gzip
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.errors import MissingTableError
from pipeline.operate.serve.metrics import scrape as scraping
from pipeline.operate.serve.metrics.scrape import Scraper
from pipeline.operate.serve.snapshot import Snapshot
from pipeline.tables.stamp import Stamp
from tests.support.operate.prometheus_text import Scrape, parse
from tests.support.operate.table_world import World

LAGS = [
    {"group_id": group, "topic": topic, "partition": partition, "lag": 1}
    for group in ("billing", "search", "uuid-1")
    for topic in ("orders", "audit")
    for partition in range(4)
]


def seen(found: Scrape, label: str) -> set[str]:
    return {dict(labels)[label] for _, labels in found.values if label in dict(labels)}


def test_exclude_wins_over_include(world: World, scrape: Callable[..., Scrape]) -> None:
    world.write("partition_lag", *LAGS)
    world.write("plan_state", {"group_id": "uuid-1", "recorded_at": 0})

    found = scrape(
        groups_include=("billing", "uuid-.*"), groups_exclude=("uuid-.*",), topics_exclude=("aud.*",)
    )

    assert seen(found, "group") == seen(found, "consumergroup") == {"billing"}
    assert seen(found, "topic") == {"orders"}
    assert found.value("kafka_consumergroup_group_sum_lag", cluster_name="c", group="billing") == 4


@pytest.mark.parametrize(
    ("granularity", "labels"),
    [("partition", {"partition", "topic"}), ("topic", {"topic"}), ("group", set())],
)
def test_granularity_leaves_out_what_is_finer(
    world: World, scrape: Callable[..., Scrape], granularity: Any, labels: set[str]
) -> None:
    world.write("partition_lag", *LAGS)
    world.write("topic_offsets", {"log_end_offset": 5})

    found = scrape(granularity=granularity)

    assert {name for name in ("partition", "topic") if seen(found, name)} == labels
    assert found.value("kafka_consumergroup_group_sum_lag", cluster_name="c", group="billing") == 8
    assert found.value("lagwise_metrics_degraded", cluster_name="c") == 0


def test_too_many_series_fall_back_and_say_so(
    world: World, scraper: Callable[..., Scraper], caplog: pytest.LogCaptureFixture
) -> None:
    world.write("partition_lag", *LAGS)
    whole = parse(scraper().page().plain(b"").decode())
    in_topics = parse(scraper(granularity="topic").page().plain(b"").decode())
    most = int(whole.value("lagwise_metrics_series", cluster_name="c") or 0)
    of_topics = int(in_topics.value("lagwise_metrics_series", cluster_name="c") or 0)

    with caplog.at_level(logging.WARNING):
        full = parse(scraper(max_series=most).page().plain(b"").decode())
        limited = scraper(max_series=most - 1)
        topics = parse(limited.page().plain(b"").decode())
        world.write("acks")
        limited.page()
        groups = parse(scraper(max_series=of_topics - 1).page().plain(b"").decode())

    assert full.values == whole.values
    assert not seen(topics, "partition")
    assert seen(topics, "topic")
    assert not seen(groups, "topic")
    assert seen(groups, "group") == {"billing", "search", "uuid-1"}
    for degraded in (topics, groups):
        assert degraded.value("lagwise_metrics_degraded", cluster_name="c") == 1
        assert degraded.value("lagwise_metrics_series", cluster_name="c") == most
    assert [record.granularity for record in caplog.records] == ["topic", "group"]


def test_page_is_made_once_for_each_version(world: World, scraper: Callable[..., Scraper]) -> None:
    running = scraper()
    first = running.page()

    assert running.page() is first
    world.write("orders", {"paused": True, "position": 1})
    assert running.page() is not first


def test_compressed_page_is_the_plain_one(world: World, scraper: Callable[..., Scraper]) -> None:
    world.write("partition_lag", *LAGS)
    page = scraper().page()

    for more in (b"", b"x 1\n", b"y 2\n"):
        assert gzip.decompress(page.gzip(more)) == page.plain(more)


def test_tables_that_are_not_there_yet_are_named(world: World, scraper: Callable[..., Scraper]) -> None:
    running = scraper()
    world.root.joinpath("acks").rename(world.root / "away")

    with pytest.raises(MissingTableError, match="no table acks"):
        running.page()


def test_newest_batch_is_shown_with_its_clock(world: World, scrape: Callable[..., Scrape]) -> None:
    world.replace("partition_lag", stamp=Stamp(batch_id=7, at_ms=1_700_000_000_123, behind=(3, 4)))

    found = scrape()

    assert found.value("lagwise_last_batch_timestamp_seconds", cluster_name="c") == 1_700_000_000.123
    assert found.value("lagwise_provisional_partitions", cluster_name="c") == 2
    assert found.value("lagwise_driver_term", cluster_name="c") == 3


def test_before_the_first_batch_its_clock_is_unknown(scrape: Callable[..., Scrape]) -> None:
    assert scrape().value("lagwise_last_batch_timestamp_seconds", cluster_name="c") is None


def test_older_page_is_not_made_after_a_newer_one(
    world: World, scraper: Callable[..., Scraper], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("partition_lag", {"lag": 5})
    shared, opening = scraper(), scraping.snapshot
    pages: list[bytes] = []
    later = threading.Thread(target=lambda: pages.append(shared.page().plain(b"")))

    def opened(*arguments: Any) -> Snapshot:
        found = opening(*arguments)
        if threading.current_thread() is not later:
            world.replace("partition_lag", {"lag": 9})
            later.start()
            # It waits for this scrape. If it did not, it would have its page by then.
            later.join(0.5)
        return found

    monkeypatch.setattr(scraping, "snapshot", opened)
    older = shared.page().plain(b"")
    later.join()

    labels = {"consumergroup": "billing", "topic": "invoices", "partition": "0"}
    lags = [parse(page.decode()).value("kafka_consumergroup_lag", **labels) for page in (older, *pages)]
    assert lags == [5, 9]
    monkeypatch.setattr(scraping, "snapshot", opening)
    monkeypatch.delattr(Scraper, "_made")
    assert shared.page().plain(b"") == pages[0]
