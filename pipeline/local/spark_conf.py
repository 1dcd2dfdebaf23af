"""Spark properties that a user has set for spark-submit by options, files or environment variables.

spark-submit takes the last of repeated options and does not join lists: code that adds options has to know what they
would replace. Source: `SparkSubmitOptionParser`, `SparkSubmitArguments` and `AbstractCommandBuilder` of
Spark 4.0.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.local.jars import pyspark_jars

LISTS = {
    "--jars": "spark.jars",
    "--py-files": "spark.submit.pyFiles",
    "--files": "spark.files",
    "--archives": "spark.archives",
}
"""Options that take lists, separated by commas, and their properties."""

_DEPLOY_MODE = "spark.submit.deployMode"
_OPTIONS = {
    **LISTS,
    "--deploy-mode": _DEPLOY_MODE,
    "--driver-class-path": "spark.driver.extraClassPath",
}
_WITH_VALUE = {*_OPTIONS, "--conf", "-c", "--properties-file"}
_EARLIER_NAMES = {
    "spark.yarn.executor.failuresValidityInterval": "spark.executor.failuresValidityInterval",
}

# As java.util.Properties reads them, except for characters written as \t, \n or \u0020.
_LINE = re.compile(r"[ \t\f]*(?:[#!].*|((?:[^\\\n]|\\.|\\\n)*))\n?")
"""A comment, which ends with its line, or a property, which continues after a backslash."""
_LINE_GOES_ON = re.compile(r"\\\n[ \t\f]*")
_PROPERTY = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:]?\s*(.*?)\s*")
_ESCAPED = re.compile(r"\\(.)")


def properties(options: Sequence[str], environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The properties that spark-submit will use, without options that do not matter to lagwise.

    Args:
        options: Options of spark-submit.
        environment: Its environment variables.
        folder: Folder of its configuration.
    """
    by_option: dict[str, str] = {}
    by_conf: dict[str, str] = {}
    files: list[Path] = []
    for name, value in _read(options):
        if name in _OPTIONS:
            by_option[_OPTIONS[name]] = value
        elif name == "--properties-file":
            files = [Path(value)]
        else:
            key, _, text = value.partition("=")
            by_conf[key] = text
    if not files or "--load-spark-defaults" in options:
        files.insert(0, folder / "spark-defaults.conf")
    found = {_DEPLOY_MODE: environment["DEPLOY_MODE"]} if "DEPLOY_MODE" in environment else {}
    for file in files:
        found |= _of_file(file)
    told = {**found, **by_conf, **by_option}
    return {_EARLIER_NAMES[key]: value for key, value in told.items() if key in _EARLIER_NAMES} | told


def _read(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options that matter with their values, which are the next word or follow `=`."""
    rest = iter(options)
    for option in rest:
        name, is_one_word, value = option.partition("=") if option.startswith("--") else (option, "", "")
        if name in _WITH_VALUE:
            yield name, value if is_one_word else next(rest, "")


def folder_of(spark_submit: str, environment: Mapping[str, str]) -> Path:
    """Folder of the configuration of this spark-submit, unless its start script sets another one."""
    if folder := environment.get("SPARK_CONF_DIR"):
        return Path(folder)
    if home := environment.get("SPARK_HOME"):
        return Path(home, "conf")
    program = Path(shutil.which(spark_submit) or spark_submit)
    # The script that pip installs finds pyspark through the driver's Python.
    is_of_pip = program.with_name("find_spark_home.py").exists()
    return (pyspark_jars().parent if is_of_pip else program.parent.parent) / "conf"


def _of_file(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    lines = _LINE.findall(file.read_text(encoding="utf-8", errors="replace"))
    found = (_PROPERTY.fullmatch(_LINE_GOES_ON.sub("", line)) for line in lines)
    return {one[1]: _ESCAPED.sub(r"\1", one[2]) for one in found if one}
