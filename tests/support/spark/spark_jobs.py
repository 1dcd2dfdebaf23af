"""Jobs that Spark has run, as its own pages would show them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

_WARM_UP = "start the Python of tasks"
"""See `pipeline.run.spark.warm_up`; it may still run when the first test does."""


class SparkJob(NamedTuple):
    """A job that has ended."""

    description: str
    tasks: int


def jobs_of(spark: SparkSession, run: Callable[[], object]) -> list[SparkJob]:
    """The jobs that Spark runs for this, in their order; not the one that a session begins by itself."""
    before = set(_jobs(spark))
    run()
    after = _jobs(spark)
    found = [after[number] for number in sorted(after.keys() - before)]
    return [job for job in found if job.description != _WARM_UP]


def _jobs(spark: SparkSession) -> dict[int, SparkJob]:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty(60_000)
    found = context.statusStore().jobsList(None)
    jobs = [found.apply(index) for index in range(found.size())]
    return {job.jobId(): SparkJob(_description(job), job.numTasks()) for job in jobs}


def _description(job: Any) -> str:
    """Empty for a job without one, as those of tests that call Spark themselves."""
    given = job.description()
    return str(given.get()) if given.isDefined() else ""
