from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.model import Config, SourceConfig
from pipeline.decode import log_offsets
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share, settings_of


@pytest.mark.parametrize(("splits", "expected"), [(0, 12), (3, 3)])
def test_partitions_are_cut_for_the_cores_that_spark_has_unless_the_operator_says_otherwise(
    splits: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def shares(settings: LogOffsetsSettings) -> list[Share]:
        asked.append(settings.splits)
        return [Share(), Share()]

    monkeypatch.setattr(log_offsets, "shares", shares)
    monkeypatch.setattr(log_offsets, "rows_of_shares", lambda *_: None)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=12))

    log_offsets.read(spark, settings_of(Config(source=SourceConfig(log_offset_splits=splits))))

    assert asked == [expected]
