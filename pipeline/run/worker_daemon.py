"""Spark's daemon of Python workers, with what every task needs imported before workers are forked.

Workers then begin at once, and share the memory of what they have in common. Nothing here may start a thread or a
client: neither lives on behind a fork.
"""

from pyspark.daemon import manager

import pipeline.decode.records
import pipeline.run.batch.in_tasks  # noqa: F401 - imported for those that are forked

if __name__ == "__main__":
    manager()
