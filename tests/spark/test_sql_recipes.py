"""The queries of `deploy/docs/sql.md` answer right in Spark SQL."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.support.operate.sql_recipes import ANSWERS, OPENINGS, QUERIES, ROOT, written


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value


def test_spark_answers_the_queries_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path)
    exec(OPENINGS[1].replace(ROOT, str(tmp_path)), {"spark": spark})  # noqa: S102 - the page's own lines

    found = {
        title: [tuple(map(_in_utc, row)) for row in spark.sql(_in_spark(query)).collect()]
        for title, query in QUERIES.items()
    }

    assert found == ANSWERS


def _in_spark(query: str) -> str:
    return query.rstrip().rstrip(";").replace("unnest(", "explode(")
