"""`tables.catalog` on a Hive metastore that is away: Spark's own error is reported, and the session goes on.

With an error of the catalog's in its place: `tests/spark/test_catalog.py`.
"""

from pathlib import Path

from pipeline.local.embedded.config import HOST, free_port
from pipeline.tables.upkeep.creation import create_tables
from tests.spark.test_metastore import session


def test_metastore_that_is_away_is_reported_and_the_session_goes_on(tmp_path: Path) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})

    done = session("register", f"thrift://{HOST}:{free_port()}", str(tmp_path), "lags_of_tests")

    assert "the tables could not be registered in the catalog; the stream continues" in done.stderr
    assert done.stdout == "3\n"
