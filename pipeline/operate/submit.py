"""The command of `deploy/submit.sh`: spark-submit with the user's arguments and lagwise's additions.

Prints where the driver will run, `client` or `cluster`, the Python of executors, and the words of the command, each
ended by a zero byte; the script starts it. What the user tells spark-submit, in SUBMIT_ARGS or in Spark's own files
and variables, stays: lagwise's jars and files come after the user's, and lagwise's defaults are for what the user does
not say.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.config.load import load
from pipeline.config.secret_values import is_reference
from pipeline.errors import ConfigError, PipelineError
from pipeline.local import class_data, shipped_code, spark_conf
from pipeline.local.jars import resolve_for_spark
from pipeline.run.spark.session import DRIVER_JVM, LOG_SETTINGS, PACKAGES, shared_classes

_RUN = Path(__file__).parents[1] / "run"
_CLASS_PATH = "spark.driver.extraClassPath"
_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_OF_JVM = (
    "spark.driver.memory",
    "spark.driver.extraJavaOptions",
    "spark.driver.extraLibraryPath",
    _CLASS_PATH,
    _JAVA_OPTIONS,
)
"""Properties that take effect only when the driver's JVM starts; the job cannot set them later."""
_FORGOTTEN_AFTER = {
    # A job runs for weeks: without it, failures of executors and drivers add up over all that time
    # until YARN ends the job.
    "spark.executor.failuresValidityInterval": "1h",
    "spark.yarn.am.attemptFailuresValidityInterval": "1h",
}


class Brought(NamedTuple):
    """What lagwise brings to Spark."""

    code: Path
    """For executors."""
    jars: tuple[Path, ...]
    shared_classes: tuple[str, ...]
    """Java options by which a driver with these jars takes the archive of its classes; none without one."""


class Submission(NamedTuple):
    """What the script starts."""

    is_cluster: bool
    """The driver runs on some host of the cluster: its working folder has what is shipped, and nothing else."""
    python: str
    """Python of executors, and of a driver in the cluster."""
    command: tuple[str, ...]


def submission(arguments: Sequence[str], environment: Mapping[str, str], brought: Brought) -> Submission:
    """The command that starts the job.

    Raises:
        ConfigError: A variable or a file cannot be used; the message names it.
    """
    config, rest = _config_of(arguments)
    options, archive = _options(environment), _archive(environment)
    python = "./environment/bin/python" if archive else environment.get("PYSPARK_PYTHON") or sys.executable
    program = environment.get("SPARK_SUBMIT")
    spark_submit = program or str(Path(sys.executable).with_name("spark-submit"))
    told = spark_conf.properties(options, environment, spark_conf.folder_of(spark_submit, environment))
    is_cluster = told.get("spark.submit.deployMode") == "cluster"
    of_jvm = _of_jvm(Path(config))
    told |= of_jvm
    # These follow lagwise's own.
    of_jvm.pop(_JAVA_OPTIONS, None)
    # The archive of classes is of the Spark of this environment, and of a class path that is all lagwise's.
    takes_archive = not program and _CLASS_PATH not in told
    lists = {
        "--jars": [str(jar) for jar in brought.jars],
        "--py-files": [str(brought.code)],
        "--archives": archive,
        "--files": [str(LOG_SETTINGS), config] if is_cluster else [],
    }
    _refuse_commas(*lists.values())
    lists["--files"].append(environment.get("LAGWISE_FILES", ""))
    own = _of_cluster(python) if is_cluster else _of_client(brought, takes_archive=takes_archive)
    own |= _FORGOTTEN_AFTER
    command = (
        *(spark_submit, *options, *_added(own, told), *_joined(lists, told), *_words(of_jvm)),
        *(str(_RUN / "main.py"), "--config", Path(config).name if is_cluster else config, *rest),
    )
    return Submission(is_cluster, python, command)


def _config_of(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The file of the configuration, and the other arguments."""
    parser = argparse.ArgumentParser(
        "submit.sh",
        usage="deploy/submit.sh --config FILE [--once | --standby]",
        add_help=False,
        # `--conf` is spark-submit's, and no short form of `--config`.
        allow_abbrev=False,
    )
    parser.add_argument("--config", default="conf/lagwise.toml")
    known, rest = parser.parse_known_args(arguments)
    return known.config, rest


def _of_jvm(config: Path) -> dict[str, str]:
    """Return `[spark]`'s properties for the driver's JVM, without references: every user can read a command line."""
    # The job reports a file that is missing.
    spark = load(config).spark if config.is_file() else {}
    return {key: spark[key] for key in _OF_JVM if key in spark and not is_reference(spark[key])}


def _options(environment: Mapping[str, str]) -> list[str]:
    try:
        return shlex.split(environment.get("SUBMIT_ARGS", ""))
    except ValueError as error:
        raise ConfigError(
            f"SUBMIT_ARGS cannot be read as words of a shell: {error}; put values with spaces in quotation marks"
        ) from None


def _archive(environment: Mapping[str, str]) -> list[str]:
    """The environment of executors, with the name under which it is unpacked."""
    file = environment.get("LAGWISE_ENVIRONMENT")
    if not file:
        return []
    if not Path(file).is_file():
        raise ConfigError(f"LAGWISE_ENVIRONMENT: no file {file}: make it by deploy/pack.sh")
    return [f"{file}#environment"]


def _refuse_commas(*lists: Sequence[str]) -> None:
    for path in (path for one in lists for path in one if "," in path):
        raise ConfigError(
            f"{path}: Spark takes a comma for the end of a file's name; move the file, or its folder"
        )


def _of_client(brought: Brought, *, takes_archive: bool) -> dict[str, str]:
    options = (f"-Dlog4j2.configurationFile={LOG_SETTINGS}", *DRIVER_JVM)
    if not (takes_archive and brought.shared_classes):
        return {_JAVA_OPTIONS: class_data.one_line(options)}
    return {
        _JAVA_OPTIONS: class_data.one_line((*options, *brought.shared_classes)),
        # The archive is of a driver that has the jars on its class path.
        _CLASS_PATH: os.pathsep.join(map(str, brought.jars)),
    }


def _of_cluster(python: str) -> dict[str, str]:
    return {
        _JAVA_OPTIONS: " ".join((f"-Dlog4j2.configurationFile={LOG_SETTINGS.name}", *DRIVER_JVM)),
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": python,
        "spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON": python,
    }


def _added(own: Mapping[str, str], told: Mapping[str, str]) -> list[str]:
    """Lagwise's defaults for options that the user does not set; Java takes the last of two equal options."""
    java = " ".join(filter(None, (own[_JAVA_OPTIONS], told.get(_JAVA_OPTIONS))))
    unsaid = {key: value for key, value in own.items() if key not in told} | {_JAVA_OPTIONS: java}
    return _words(unsaid)


def _words(conf: Mapping[str, str]) -> list[str]:
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def _joined(lists: Mapping[str, Sequence[str]], told: Mapping[str, str]) -> list[str]:
    """The user's files come first: if two have one name, YARN takes the first."""
    joined = {
        option: ",".join(filter(None, (told.get(spark_conf.LISTS[option]), *own)))
        for option, own in lists.items()
    }
    return [word for option, value in joined.items() if value for word in (option, value)]


def main() -> int:
    """Print the command, and return the exit status."""
    try:
        jars = resolve_for_spark(PACKAGES)
        brought = Brought(code=shipped_code.zipped(), jars=jars, shared_classes=shared_classes(jars))
        found = submission(sys.argv[1:], os.environ, brought)
    except PipelineError as error:
        sys.stderr.write(f"submit.sh: {error}\n")
        return 1
    words = ("cluster" if found.is_cluster else "client", found.python, *found.command)
    sys.stdout.write("".join(f"{word}\0" for word in words))
    return 0
