"""What the shares of a batch's records come to."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from pipeline.decode import records
from pipeline.kafka.positions import Span
from pipeline.kafka.sources.records.consumer import ReadSettings
from tests.support.batches import FILTERS
from tests.support.frames import decoded_rows

SPARK = cast("SparkSession", SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2)))
SETTINGS = ReadSettings(properties={}, timeout_s=1)


def test_one_record_of_each_key_stays_though_two_shares_have_read_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group: dict[str, Any] = {"group_type": "classic", "members": []}
    found = decoded_rows(
        {"row_kind": "tombstone", "position": 7, "offsets_partition": 3},
        {"row_kind": "commit", "position": 5, "offsets_partition": 4, "committed_offset": 9},
        {"row_kind": "group", "position": 8, "offsets_partition": 3} | group,
        {"row_kind": "group_tombstone", "position": 9, "offsets_partition": 4} | group,
    )
    monkeypatch.setattr(records, "rows_of_shares", lambda *_: found)
    spans = tuple(Span(topic="offsets", partition=number, start=0, end=60_000) for number in (3, 4))

    rows = records.read(SPARK, spans, SETTINGS, FILTERS)

    assert rows.kind("commit", "tombstone")["position"].to_pylist() == [7]
    assert rows.kind("group", "group_tombstone")["position"].to_pylist() == [9]
