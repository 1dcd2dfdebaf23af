"""Source: whether a task is at its last attempt, which answers without what has ended those before it.

Spark gives up a job whose task has failed `spark.task.maxFailures` times, and with the job the query.
"""

from pyspark import TaskContext


def failures() -> int:
    """Return the number of failures of the task before this attempt."""
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def failures_before_last(attempts: int) -> int | None:
    """Return the number of failures before this one of so many attempts if it is the last; None otherwise."""
    number = failures()
    return None if number == 0 or number + 1 < attempts else number
