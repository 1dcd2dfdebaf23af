"""Errors of Spark and Delta about a failed statement, worded for its author."""

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

from pyspark.errors import PySparkException

from pipeline.errors import PipelineError, StoreError
from pipeline.operate.output import plain
from pipeline.operate.sql import versions
from pipeline.tables.reading import Tables

_NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE")
_TOO_LARGE = "spark.driver.maxResultSize"
# About the versions that a statement asks for: not in the log, outside its times, or without their files.
_GONE = re.compile(
    r"DELTA_VERSION_NOT_FOUND|DELTA_TIMESTAMP_(EARLIER|GREATER)|Cannot time travel|FAILED_READ_FILE\.FILE_NOT_EXIST"
    r"|DELTA_VERSIONS_NOT_CONTIGUOUS|DELTA_TRUNCATED_TRANSACTION_LOG|DELTA_LOG_FILE_NOT_FOUND|FileNotFoundException"
)
_CODE = re.compile(r"^\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r" ?SQLSTATE: \w{5}")
_NAME = re.compile(r"`([^`]+)` cannot be found|(?:Table|table) (?:or view )?[`']?([\w.`]+)[`']?")


class FailedError(PipelineError):
    """Spark rejects or fails the statement; the message gives the reason."""


def in_words(error: Exception, tables: Tables, names: Sequence[str], asked: Collection[str]) -> str:
    """Why a statement failed; of the tables with these names, it names those in `asked`."""
    text = str(error)
    condition = (error.getCondition() if isinstance(error, PySparkException) else None) or ""
    if condition.startswith(_NO_TABLE):
        return _no_table(text, names)
    if _GONE.search(condition) or _GONE.search(text):
        return "; ".join((_sentence(_innermost(text)), *_spans(tables, asked)))
    if _TOO_LARGE in text:
        return "the answer is larger than 1 GiB; ask for fewer rows or columns, or sums of them"
    return _sentence(_innermost(text))


def _no_table(text: str, names: Sequence[str]) -> str:
    found = _NAME.search(text)
    wanted = (found[1] or found[2] or "").replace("`", "") if found else ""
    near = difflib.get_close_matches(wanted.rpartition(".")[2].lower(), names, n=1)
    guess = f" (did you mean {near[0]}?)" if near else ""
    return f"there is no table {wanted}{guess}; the tables are {', '.join(sorted(names))}"


def _spans(tables: Tables, asked: Collection[str]) -> Iterator[str]:
    """For each table, which of its versions can be read."""
    for name in sorted(asked):
        try:
            oldest, newest = versions.span(tables, name)
        except StoreError as error:
            yield str(error)
        else:
            yield (
                f"of {name} the oldest version that is there is {oldest.number}, of {plain(oldest.at)}, and the "
                f"newest {newest.number}, of {plain(newest.at)}"
            )
    yield (
        "older ones go after tables.retention_hours; lag_history keeps what was (`lagwise history --at TIME`)"
    )


def _innermost(text: str) -> str:
    """The text without the trace, by its last cause: the rest is about tasks and stages."""
    causes = re.findall(r"^Caused by: [\w.$]+: (.*)$", text, re.MULTILINE)
    return causes[-1] if causes else text


def _sentence(text: str) -> str:
    """The first paragraph, on one line, without codes and without Spark's plan."""
    lines = takewhile(lambda line: not line.startswith(("==", "'", "+-", "\tat ")), text.strip().splitlines())
    paragraph = " ".join(takewhile(bool, (line.strip() for line in lines)))
    return _STATE.sub("", _CODE.sub("", paragraph)).replace(".;", ";").strip().rstrip(";.")
