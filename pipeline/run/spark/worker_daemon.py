"""Spark's daemon of Python workers, which imports the modules of every task before it forks workers.

Workers then start at once and share the memory of these modules. Nothing here may start a thread or a client: neither
survives a fork.
"""

import gc

from pyspark.daemon import manager

import pipeline.run.tasks.deciding
import pipeline.run.tasks.folding
import pipeline.run.tasks.tables
import pipeline.source.datasource
import pipeline.source.partitions
import pipeline.source.reading  # noqa: F401 - imported for those that are forked

if __name__ == "__main__":
    # Spark collects garbage after each task. Imported modules contain none, and scanning them takes a worker 60 ms; a
    # small task takes 2.
    gc.freeze()
    manager()
