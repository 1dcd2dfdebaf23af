"""The Spark that answers: local, with the tables in a catalog in memory; it leaves no files behind."""

import logging
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.config.model import Config
from pipeline.config.object_stores import store_of
from pipeline.errors import MissingDependencyError, MissingTableError, PipelineError
from pipeline.local.jars import resolve_for_spark
from pipeline.local.java import find_java
from pipeline.operate.output import note, progress
from pipeline.operate.sql.answers import Answer, answer
from pipeline.operate.sql.plans import refuse_actions
from pipeline.operate.sql.statements import names_in, refuse_writes
from pipeline.operate.sql.words import FailedError, in_words
from pipeline.operate.sql.worker import Worker, result_of
from pipeline.run.spark.session import PACKAGES, start_session
from pipeline.tables.catalog import register
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import path_of

_Result = TypeVar("_Result")

_DATABASE = "default"
_LAST_WORDS = 2000
"""Characters of a JVM that did not start."""
# From the job's settings: what reaches a store and what the JVM may take; the others are a cluster's.
_TAKEN = ("spark.hadoop.", "spark.jars", "spark.driver.memory", "spark.local.dir")
_OWN = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "true",
    # Defaults of 200 and 50: on one machine, most of the time of a small query.
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Where no driver removes files, versions outlive their retention, and can be read.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}


class StartError(PipelineError):
    """Spark cannot be used; the message gives the reason."""


class Engine:
    """Answers statements about the tables under one root. Starts in the background; `ask` waits for it."""

    def __init__(self, tables: Tables, config: Config) -> None:
        """Find the tables, without Spark, and begin to start it.

        Raises:
            StartError: Spark cannot read tables at this location.
            MissingTableError: There is no table under the root.
            StoreError: A table cannot be opened, or a newer lagwise has written it.
            MissingDependencyError: No Java, or no jars of Delta.
        """
        store = store_of(tables.root)
        if store is not None:
            raise StartError(
                f"the tables are at {tables.root}, which Spark cannot read without {store.hadoop}: query them "
                "with DuckDB or Polars (deploy/docs/sql.md), or make a copy with `lagwise backup` and query that"
            )
        self.tables = tables
        self.names = tuple(_present(tables))
        find_java()
        self._jars = resolve_for_spark(PACKAGES, report=note)
        self._settings = {key: value for key, value in config.spark.items() if key.startswith(_TAKEN)}
        self._scratch = tempfile.mkdtemp(prefix="lagwise-sql-")
        self._log = Path(self._scratch) / "stderr"
        # It writes each failed query to stderr, as JSON.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        self._entered: set[str] = set()
        self._worker = Worker()
        self._started: Future[SparkSession] = self._worker.begin(self._start)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_raised: object) -> None:
        # The JVM ends with this process, and is not waited for.
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _start(self) -> SparkSession:
        try:
            with self._log.open("w") as log, _stderr_of_jvm(log):
                return self._started_session()
        except (MissingDependencyError, PySparkException, Py4JError, OSError) as error:
            words = f"{error} {self._log.read_text(errors='replace')[-_LAST_WORDS:]}"
            raise StartError(f"Spark cannot be started: {' '.join(words.split())}") from error

    def _started_session(self) -> SparkSession:
        warehouse = {"spark.sql.warehouse.dir": self._scratch}
        spark = start_session({**self._settings, **_OWN, **warehouse}, jars=self._jars)
        # What fails is raised here; the JVM's log would have it once more, with its trace.
        spark.sparkContext.setLogLevel("OFF")
        # The first one takes seconds, in which somebody at a prompt is typing.
        self._enter(spark, self.names[:1])
        return spark

    def _enter(self, spark: SparkSession, names: Iterable[str]) -> None:
        """Register these tables with Spark; each new one takes a quarter of a second."""
        new = [name for name in names if name not in self._entered]
        register(spark, _DATABASE, ((name, path_of(self.tables.root, name)) for name in new))
        self._entered.update(new)

    def ask(self, statement: str, *, most: int | None = None) -> Answer:
        """Rows of a statement without its semicolon, at most `most` of them; Ctrl-C cancels it.

        Raises:
            RefusedError: The statement does more than read.
            FailedError: Spark rejects or fails the statement.
            KeyboardInterrupt: It was cancelled.
        """
        refuse_writes(statement)
        if not self._started.done():
            with progress("starting Spark, which takes about ten seconds", after_s=0.0):
                self._wait(self._started)
        spark = self._started.result()
        with progress("running"):
            return self._wait(self._worker.begin(lambda: self._run(spark, statement, most)))

    def _run(self, spark: SparkSession, statement: str, most: int | None) -> Answer:
        named = names_in(statement, self.names)
        try:
            refuse_actions(spark, statement)
            self._enter(spark, named or self.names)
            return answer(spark, statement, most=most)
        except (PySparkException, Py4JError, pa.ArrowException) as error:
            raise FailedError(in_words(error, self.tables, self.names, named)) from error

    def _wait(self, future: "Future[_Result]") -> _Result:
        return result_of(future, self._cancel)

    def _cancel(self) -> None:
        if self._started.done() and self._started.exception() is None:
            self._started.result().sparkContext.cancelAllJobs()


def _present(tables: Tables) -> Iterator[str]:
    """Names of the tables that exist.

    Raises:
        MissingTableError: None is.
        StoreError: One cannot be opened, or a newer lagwise has written it.
    """
    missing: list[MissingTableError] = []
    for table in TABLES:
        try:
            tables.open(table.name)
        except MissingTableError as error:
            missing.append(error)
        else:
            yield table.name
    if len(missing) == len(TABLES):
        raise missing[0]


@contextmanager
def _stderr_of_jvm(log: IO[str]) -> Iterator[None]:
    """Redirect the stderr of a JVM that pyspark starts meanwhile, whose messages would disturb the prompt."""
    gateway: Any = java_gateway
    launch = gateway.Popen
    gateway.Popen = partial(launch, stderr=log)
    try:
        yield
    finally:
        gateway.Popen = launch
