"""The source in a query of one's own: commits, members and log ends as rows, without the tables of a job."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pipeline.local.jars import resolve_for_spark
from pipeline.run.spark.session import PACKAGES, build_session
from pipeline.source.datasource import LagwiseSource
from tests.support.brokers.broker import create_offsets_topic, create_topics, produce, small_broker
from tests.support.brokers.inject import commit_record, inject
from tests.support.groups.group_records import group_record, member

PAGE = Path(__file__).parents[2] / "deploy" / "docs" / "sql.md"
SPARK_EXAMPLE = re.compile(
    r"## Commits, members and log ends in a notebook\n.*?```python\n(.*?)```", re.DOTALL
)


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    session = build_session({}, jars=resolve_for_spark(PACKAGES))
    session.dataSource.register(LagwiseSource)
    return session


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with a topic of two partitions, read by a group with one member, which has committed it twice."""
    with small_broker() as broker:
        servers = broker.bootstrap_servers
        create_offsets_topic(servers)
        create_topics(servers, {"orders": 2})
        produce(servers, "orders", {0: 30, 1: 20})
        inject(
            servers,
            [
                group_record("billing", member("m", "orders", assigned={"orders": (0, 1)})),
                *(
                    commit_record("billing", "orders", partition, offset)
                    for offset in (5, 12)
                    for partition in (0, 1)
                ),
            ],
        )
        yield servers


def commits(rows: list[Any]) -> list[tuple[str, int, int]]:
    found = [row for row in rows if row["row_kind"] == "commit" and row["group_id"] == "billing"]
    return sorted((row["topic"], row["partition"], row["committed_offset"]) for row in found)


def test_read_gives_what_is_there_now(spark: SparkSession, bootstrap: str) -> None:
    rows = spark.read.format("lagwise").option("kafka.bootstrap.servers", bootstrap).load().collect()

    assert commits(rows) == [("orders", 0, 12), ("orders", 1, 12)]
    ends = {
        (row["topic"], row["partition"]): row["log_end_offset"]
        for row in rows
        if row["row_kind"] == "log_offset"
    }
    assert (ends["orders", 0], ends["orders", 1]) == (30, 20)
    (group,) = [row for row in rows if row["row_kind"] == "group" and row["group_id"] == "billing"]
    assert [(one["member_id"], dict(one["assigned"])) for one in group["members"]] == [
        ("m", {"orders": [0, 1]})
    ]


def test_every_commit_is_a_row_where_they_are_not_to_be_collapsed(
    spark: SparkSession, bootstrap: str
) -> None:
    source = spark.read.format("lagwise").option("kafka.bootstrap.servers", bootstrap)

    rows = source.option("collapse", "false").option("groups_include", "bill.*").load().collect()

    assert commits(rows) == [("orders", number, offset) for number in (0, 1) for offset in (5, 12)]


def test_stream_goes_on_with_what_comes(spark: SparkSession, bootstrap: str, tmp_path: Path) -> None:
    stream = spark.readStream.format("lagwise").option("kafka.bootstrap.servers", bootstrap).load()

    def read() -> list[Any]:
        out = str(tmp_path / "rows")
        query = (
            stream.writeStream.format("parquet")
            .option("path", out)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        return spark.read.parquet(out).collect()

    first = commits(read())
    inject(bootstrap, [commit_record("billing", "orders", 1, 17)])
    second = commits(read())

    assert first == [("orders", 0, 12), ("orders", 1, 12)]
    assert second == [*first, ("orders", 1, 17)]


def test_query_that_cannot_read_says_why(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("lagwise").option("kafka.bootstrap.servers", "127.0.0.1:1").load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()

    with pytest.raises(StreamingQueryException, match="the Kafka cluster cannot be used"):
        query.awaitTermination(120)


def test_missing_option_is_named(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"option kafka\.bootstrap\.servers is missing"):
        spark.read.format("lagwise").load().collect()


def test_example_of_the_page_works(spark: SparkSession, bootstrap: str) -> None:
    found = SPARK_EXAMPLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    names: dict[str, Any] = {"spark": spark}

    exec(found[1].replace("broker:9092", bootstrap), names)  # noqa: S102 - our own page

    lags = {(row["group_id"], row["partition"]): row["lag"] for row in names["lag"].collect()}
    assert (lags["billing", 0], lags["billing", 1]) == (30 - 12, 20 - 17)
