"""Spark's daemon of Python workers, with what every task needs imported before workers are forked.

Workers then begin at once, and share the memory of what they have in common. Nothing here may start a thread or a
client: neither lives on behind a fork.
"""

import gc

from pyspark.daemon import manager

import pipeline.run.tasks.deciding
import pipeline.run.tasks.folding
import pipeline.run.tasks.tables
import pipeline.source.datasource
import pipeline.source.reading  # noqa: F401 - imported for those that are forked

if __name__ == "__main__":
    # Spark collects garbage after each task: of what is imported there is none, and to look through it takes a worker
    # 60 ms, where a small task takes 2.
    gc.freeze()
    manager()
