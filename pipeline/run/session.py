"""The Spark session the stream runs in: Delta on the class path, UTC, small and quiet.

Settings that the job relies on are set here, each with its reason; what an operator may tune comes from the
`[spark]` table of the configuration and wins, except for the few in `_REQUIRED`.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.local import class_data

DELTA = "io.delta:delta-spark_4.0_2.13:4.4.0"
PACKAGES = (DELTA,)

_SECRETS = "(?i)secret|password|passphrase|token|access[.]?key|sasl|jaas|ssl[.]key|credential"

_REQUIRED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Timestamps of tables, control records and logs are UTC wherever the driver runs.
    "spark.sql.session.timeZone": "UTC",
    # What tasks return meets what is read from files, and its texts have to be of one Arrow type.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Client properties ride in source options; plans, logs and the UI must not show the secret ones.
    "spark.redaction.regex": _SECRETS,
    "spark.sql.redaction.options.regex": _SECRETS,
}

_DEFAULTS = {
    # The jobs of a batch have one stage each, without an exchange: there is nothing to adapt.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # The job's own retention of finished work, so that the driver's heap stays flat over weeks.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.streaming.ui.retainedQueries": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Wait for the batch at hand when stopping, but not for ever.
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # On a cluster its module would have to be where the executors start Python, before any code was shipped there.
    "spark.python.daemon.module": "pipeline.run.worker_daemon",
}
_LOG4J = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"


def build_session(settings: Mapping[str, str], *, jars: tuple[Path, ...] = ()) -> SparkSession:
    """Start the session, or take the one that spark-submit has started.

    Args:
        settings: `spark.*` properties of the configuration.
        jars: Jar files to put on the driver's class path; empty under spark-submit, which brings them.
    """
    # Executors start `python3` from PATH unless told otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("lagwise")
    conf = dict(_DEFAULTS)
    if jars:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf |= _LOCAL | {
            "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
            "spark.driver.defaultJavaOptions": class_data.one_line((_LOG4J, *shared_classes(jars))),
        }
    for key, value in {**conf, **settings, **_REQUIRED}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def shared_classes(jars: tuple[Path, ...]) -> tuple[str, ...]:
    """Java options by which a driver on this machine takes the archive of its classes; none without one.

    Args:
        jars: Those that it brings beside pyspark's own.
    """
    return class_data.use(class_data.archive("spark", class_data.spark_class_path(jars)))
