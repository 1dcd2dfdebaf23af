"""Topic ids beside log offsets."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.kafka.sources.log_offsets.ask import ask, shares
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from tests.support.brokers.mock_cluster import MockCluster


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as running:
        running.create("orders", 2)
        yield running


@pytest.fixture
def settings(cluster: MockCluster) -> LogOffsetsSettings:
    return LogOffsetsSettings(
        properties={"bootstrap.servers": cluster.bootstrap, "log_level": "0"},
        topics_include=(".*",),
        topics_exclude=(),
        isolation="read_uncommitted",
        request_timeout_s=5,
        splits=2,
    )


def asked(settings: LogOffsetsSettings) -> list[dict[str, Any]]:
    """Rows of one batch, without that of the listing."""
    rows: list[dict[str, Any]] = [
        row for share in shares(settings, tasks=2) for row in ask(settings, share).to_pylist()
    ]
    assert rows[0]["topic_id"] is None
    return rows[1:]


def ids(rows: list[dict[str, Any]]) -> set[str | None]:
    return {row["topic_id"] for row in rows}


def test_all_rows_of_a_topic_have_its_id(settings: LogOffsetsSettings) -> None:
    (topic_id,) = ids(asked(settings))

    assert topic_id is not None
    assert len(topic_id) == 22


def test_topic_made_again_has_another_id(cluster: MockCluster, settings: LogOffsetsSettings) -> None:
    before = ids(asked(settings))
    cluster.delete("orders")
    cluster.create("orders", 2)
    after = asked(settings)

    assert [row["error"] for row in after] == [None, None]
    assert before.isdisjoint(ids(after))


def test_offsets_do_not_wait_for_ids_that_do_not_come(
    cluster: MockCluster, settings: LogOffsetsSettings
) -> None:
    cluster.create("payments", 1)
    asked(settings)
    for number in (0, 1):
        cluster.lead("orders", number, 2)
    cluster.lead("payments", 0, 3)
    asked(settings)
    # Nobody leads anything there, but topics are described by the controller.
    cluster.hang(1)

    begun = time.monotonic()
    rows = asked(settings)

    assert time.monotonic() - begun < 4.5
    assert [(row["log_end_offset"], row["error"]) for row in rows] == [(0, None)] * 3
    assert ids(rows) == {None}
