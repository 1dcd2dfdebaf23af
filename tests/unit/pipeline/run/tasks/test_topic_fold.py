"""Which rows of `topic_offsets` stay."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow.compute as pc

from pipeline.lag.settings import TopicSettings
from pipeline.run.tasks.tables import TopicFold
from pipeline.source.decoded import Decoded
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import arrow

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
NOW_MS = round(NOW.timestamp() * 1000)


def test_deleted_topic_is_forgotten_when_its_days_are_over(tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    ages = {"alive": None, "lately": NOW - timedelta(days=29), "long_ago": NOW - timedelta(days=31)}
    rows = arrow(
        "topic_offsets", *({"topic": name, "partition": 0, "deleted_at": at} for name, at in ages.items())
    )
    Store(str(tmp_path), term=0, storage_options={}).write(
        "topic_offsets", rows, Stamp(batch_id=1, at_ms=NOW_MS)
    )
    fold = TopicFold(
        cluster="local",
        unwanted=(),
        keep_days=30,
        settings=TopicSettings(at_ms=NOW_MS, batch_id=2, listing_error=None, half_life_ms=60_000),
    )

    folded = fold(Tables(str(tmp_path), {}), Decoded().kind("log_offset"), pc.scalar(True))

    assert sorted(folded["topic"].to_pylist()) == ["alive", "lately"]
