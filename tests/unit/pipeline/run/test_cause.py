"""The line of a failed query's message that says what happened."""

import pytest
from pyspark.errors import StreamingQueryException

from pipeline.run.query import cause_of

_OF_BATCH = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: An exception was raised by the Python Proxy.
Return Message: Traceback (most recent call last):
  File "/lib/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
  File "/pipeline/run/query.py", line 112, in __call__
    raise self.failure from error
py4j.protocol.Py4JJavaError: An error occurred while calling o629.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult: Job aborted due to stage failure: {}
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
 SQLSTATE: XXKST"""
_TASK = "Task 0 in stage 9.0 failed 4 times, most recent failure: Lost task 0.3 in stage 9.0 (TID 31) (host executor 1): "
CRASHED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
KILLED = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited with code 137"
RAISED = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/pipeline/run/tasks/folding.py", line 60, in __call__
ValueError: Error: a mistake"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (_OF_BATCH.format(_TASK + CRASHED), CRASHED),
        (_OF_BATCH.format(_TASK + KILLED), KILLED),
        (_OF_BATCH.format(_TASK + RAISED), "ValueError: Error: a mistake"),
        ("it broke\nat x", "it broke"),
        (
            "it broke\nCaused by: org.apache.kafka.common.errors.TimeoutException: late",
            "org.apache.kafka.common.errors.TimeoutException: late",
        ),
    ],
    ids=["process of a task died", "executor is gone", "a task has raised", "Spark", "Kafka"],
)
def test_cause_is_what_happened_and_not_who_has_told_it(text: str, cause: str) -> None:
    assert cause_of(StreamingQueryException(text)) == cause
