"""The Spark session the stream runs in: Delta on the class path, UTC, small and quiet.

Settings that the job relies on are set here, each with its reason; what an operator may tune comes from the
`[spark]` table of the configuration, or was given to spark-submit, and wins, except for the few in `_REQUIRED`.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pipeline.config.places import is_local
from pipeline.config.secret_values import is_reference, resolve
from pipeline.errors import MissingDependencyError
from pipeline.local import class_data
from pipeline.run.spark import python_of_spark, warm_up

_SPARKS = ("4.0", "4.1", "4.2")
"""Versions of Spark that lagwise runs on; Delta has an artifact for each."""
_PINNED = "4.2.0"
"""The one that is installed with lagwise, see ADR 0001."""
_SPARK = ".".join(pyspark.__version__.split(".")[:2])
PACKAGES = (f"io.delta:delta-spark_{_SPARK if _SPARK in _SPARKS else _SPARKS[-1]}_2.13:4.4.0",)

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
    # The jobs of a batch have one stage each, without an exchange: there is nothing to adapt, and no number of shuffle
    # partitions to choose. How many tasks they have follows the cores that Spark has at that moment.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # With any lower bound Spark asks each column for its size after each row: 60 µs of a commit's 65.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
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
    # How often the source is asked whether a batch is due.
    "spark.sql.streaming.pollingDelay": "500ms",
    # Delta's default of 50 tasks reads the log of each table when it is entered into a catalog.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# A task whose process dies, which a crash of the Kafka client may bring about, is tried again.
_LOCAL = "local[*,4]"
_PYTHON_MIB_A_CORE = 1536
"""Memory that one task needs to fold a full range, including what Spark itself adds to the heap."""
_OVERHEAD_FACTORS = ("spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
"""Spark ignores them if a size is given."""
_OF_THIS_COMMAND = {
    "spark.master": _LOCAL,
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # On a cluster its module would have to be where the executors start Python, before any code was shipped there.
    "spark.python.daemon.module": "pipeline.run.spark.worker_daemon",
}
DRIVER_JVM = (
    # Otherwise a thread of Spark's dies, and the batch waits for ever for what it was to fetch.
    "-XX:+ExitOnOutOfMemoryError",
    # The JVM only passes bytes on. The second compiler costs more than it saves: for hours, half of an idle driver's
    # processor time. An option that follows overrides each of these; a collector named here would conflict with it.
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=128m",
    "-XX:+NeverActAsServerClassMachine",
    "-Xms64m",
)
"""Java options of a driver, which is small and idle most of the time."""
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
"""What the JVM logs."""
_LOG4J = f"-Dlog4j2.configurationFile={LOG_SETTINGS}"


def build_session(settings: Mapping[str, str], *, jars: tuple[Path, ...] = ()) -> SparkSession:
    """Start the session of the job, whose tasks run Python, as `start_session` does.

    Raises:
        MissingDependencyError: As `start_session`.
        ConfigError: As `start_session`, or this host has no Python at the path of the executors' Python.
    """
    session = start_session(settings, jars=jars)
    python_of_spark.provide(session.sparkContext.pythonExec)
    warm_up.begin(session)
    return session


def start_session(settings: Mapping[str, str], *, jars: tuple[Path, ...] = ()) -> SparkSession:
    """Start the session, or take the one that spark-submit has started.

    Args:
        settings: `spark.*` properties of the configuration, whose references are resolved here.
        jars: Jar files for the driver's class path; empty under spark-submit, which ships them.

    Raises:
        MissingDependencyError: lagwise does not run on this version of Spark, or Java could not start it.
        ConfigError: A reference cannot be resolved.
    """
    if _SPARK not in _SPARKS:
        raise MissingDependencyError(
            f"this is Spark {pyspark.__version__}, and lagwise runs on {', '.join(_SPARKS)}: use a cluster or a "
            f"`spark-submit` of such a version, or install `pyspark=={_PINNED}`"
        )
    # Executors start `python3` from PATH unless told otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("lagwise")
    own: dict[str, str] = {}
    if jars:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        own = _OF_THIS_COMMAND | {
            "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
            "spark.driver.defaultJavaOptions": class_data.one_line(
                (_LOG4J, *DRIVER_JVM, *shared_classes(jars))
            ),
        }
    wanted = properties({**own, **resolve(settings)}, submitted())
    if not is_submitted():
        # pyspark would start the JVM with all properties as its arguments, which each user of this host can read.
        _launch({key: value for key, value in wanted.items() if not _is_hidden(key, settings)})
    for key, value in wanted.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _launch(shown: Mapping[str, str]) -> None:
    """Start the JVM with these properties as its arguments, unless it runs."""
    home = Path(pyspark.__file__).parent
    if (home / "bin" / "spark-submit").is_file():
        # pyspark would start the Java side of whichever Spark the host's variable names.
        os.environ["SPARK_HOME"] = str(home)
    try:
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(shown.items())))  # noqa: SLF001 - as below
    except PySparkRuntimeError as error:
        raise MissingDependencyError(
            "Java could not start Spark, and wrote the reason to stderr: check [spark] spark.driver.memory and Java "
            "options"
        ) from error


def _is_hidden(key: str, settings: Mapping[str, str]) -> bool:
    """True if a property may be secret and the JVM does not need it to start."""
    is_of_jvm = key.startswith("spark.driver.")
    return not is_of_jvm and (is_reference(settings.get(key, "")) or bool(re.search(_SECRETS, key)))


def properties(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the session: those that the job relies on, then the settings, then defaults.

    Args:
        settings: Of the configuration.
        given: To spark-submit.
    """
    known = {**given, **settings}
    defaults = dict(_DEFAULTS)
    if not is_local(known.get("spark.master", _LOCAL)) and known.keys().isdisjoint(_OVERHEAD_FACTORS):
        # Tasks run in Python, which is outside the heap: a manager of memory such as YARN would kill their executor.
        cores = int(known.get("spark.executor.cores", "1"))
        defaults["spark.executor.memoryOverhead"] = f"{cores * _PYTHON_MIB_A_CORE}m"
    unsaid = {key: value for key, value in defaults.items() if key not in given}
    return {**unsaid, **settings, **_REQUIRED}


def submitted() -> dict[str, str]:
    """Return the properties of spark-submit; empty if this process was started without it."""
    if not is_submitted():
        return {}
    # The JVM is there and knows it; a session that is there to ask would have taken executors already.
    SparkContext._ensure_initialized()  # noqa: SLF001 - pyspark has no public way to the JVM before a session
    return dict(SparkConf().getAll())


def has_ended(session: SparkSession) -> bool:
    """Return whether Spark has stopped under the job, or its JVM is gone."""
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())  # noqa: SLF001 - pyspark does not tell it otherwise
    except (Py4JError, OSError):
        return True


def attempts_of_tasks(session: SparkSession) -> int:
    """Return the attempts per task before Spark fails its job."""
    local = re.fullmatch(r"local(?:\[[^,\]]*(?:,\s*(\d+)\s*)?\])?", session.sparkContext.master or "")
    if local is not None:
        return int(local[1] or 1)
    return int(session.sparkContext.getConf().get("spark.task.maxFailures", "4") or 4)


def is_submitted() -> bool:
    """Return whether spark-submit has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_driver_of_yarn() -> bool:
    """Return whether YARN has started this process, in cluster mode."""
    given = submitted()
    return (given.get("spark.master"), given.get("spark.submit.deployMode")) == ("yarn", "cluster")


def master_of(settings: Mapping[str, str]) -> str:
    """The `spark.master` that a session with these settings would have."""
    return {"spark.master": _LOCAL, **submitted(), **settings}["spark.master"]


def shared_classes(jars: tuple[Path, ...]) -> tuple[str, ...]:
    """Java options by which a driver on this machine takes the archive of its classes; none without one.

    Args:
        jars: Those that it brings in addition to pyspark's own.
    """
    return class_data.use(class_data.archive("spark", class_data.spark_class_path(jars)))
