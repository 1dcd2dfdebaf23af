"""Tasks that read for a batch, of which the process dies: Spark tries them again, and the last attempt ends no query."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.decode.rows import ARROW, DECODED
from pipeline.kafka.sources.log_offsets.settings import Share
from pipeline.run.batch import steps
from pipeline.run.batch.steps import Done
from pipeline.source import partitions
from pipeline.source.partitions import Part, parts_of
from pipeline.source.reading import rows_of_part
from pipeline.source.settings import SourceSettings
from tests.support.job.frames import decoded_arrow
from tests.unit.pipeline.run.batch.test_cut_short import World

DIED = "the task that asks the brokers died 3 times"


@pytest.fixture(autouse=True)
def brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One share of log ends, without asking for topics."""
    monkeypatch.setattr(partitions.ask, "shares", lambda *_, **__: [Share(topics=(("t", (0, 1)),))])


class DyingReader(DataSourceReader):
    """Tasks whose first attempts take their process with them."""

    def __init__(self, world: World, parts: list[Part], *, deaths: int) -> None:
        self._settings: SourceSettings = world.settings
        self._parts = parts
        self._deaths = deaths
        self._rows = [world.rows_of(part) for part in parts]

    def partitions(self) -> list[InputPartition]:
        """As they were chosen."""
        return [*self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What the logs hold; of the last attempt, what the source itself gives, which asks nobody."""
        part, context = cast("Part", partition), TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        if attempt < self._deaths:
            os._exit(7)
        if attempt + 1 < self._settings.attempts:
            yield from decoded_arrow(*self._rows[self._parts.index(part)]).cast(ARROW).to_batches()
        else:
            yield from rows_of_part(self._settings, part)


def run(spark: SparkSession, world: World, *, deaths: int) -> Done:
    """The next batch, of which every task that reads dies so often."""
    chosen = world.choose()
    reader = DyingReader(world, parts_of(chosen.offset, world.planner, world.settings), deaths=deaths)

    class Dying(DataSource):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def schema(self) -> StructType:
            return DECODED

        def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
            return reader

    spark.dataSource.register(Dying)
    done = steps.run(world.driver, chosen.batch_id, spark.read.format("dying").load())
    assert isinstance(done, Done)
    return done


def committed(world: World) -> dict[tuple[str, int], tuple[int | None, bool]]:
    """By group and partition: the committed offset, and whether it is provisional."""
    rows: list[dict[str, Any]] = list(
        world.driver.services.store.rows(
            "partition_lag", ("group_id", "partition", "committed_offset", "provisional")
        )
    )
    return {
        (row["group_id"], row["partition"]): (row["committed_offset"], row["provisional"]) for row in rows
    }


@pytest.mark.parametrize("deaths", [1, 2])
def test_batch_whose_readers_die_and_are_tried_again_lands_as_it_should(
    spark: SparkSession, tmp_path: Path, deaths: int
) -> None:
    calm, world = World(str(tmp_path / "calm")), World(str(tmp_path / "disturbed"))
    calm.run(calm.choose())

    done = run(spark, world, deaths=deaths)

    assert done.stamp.behind == ()
    assert world.told() == calm.told()


def test_batch_whose_readers_die_three_times_says_so_and_the_next_one_reads_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    calm, world = World(str(tmp_path / "calm")), World(str(tmp_path / "disturbed"))
    calm.go_on()

    done = run(spark, world, deaths=3)

    assert done.stamp.behind == (0,)
    assert DIED in str(done.stamp.reason)
    assert not done.batch.has_read
    assert committed(world) == {}
    world.go_on()
    assert world.told() == calm.told()
