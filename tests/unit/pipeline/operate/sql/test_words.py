from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pipeline.operate.sql.words import in_words
from pipeline.tables.reading import Tables

_NAMES = ("acks", "partition_lag")
_NOWHERE = Tables("/nowhere")


class _Error(AnalysisException):
    """As the JVM's come: their text is what Spark prints."""

    def __init__(self, condition: str, text: str) -> None:
        self.condition, self.text = condition, f"[{condition}] {text}"

    def getCondition(self) -> str:  # noqa: N802 - pyspark's name
        return self.condition

    def __str__(self) -> str:
        return self.text


def test_unknown_table_has_the_nearest_name_and_all_there_are() -> None:
    error = _Error(
        "TABLE_OR_VIEW_NOT_FOUND",
        "The table or view `partition_lags` cannot be found. Verify the spelling.\nSearch path: [`system`].",
    )

    assert in_words(error, _NOWHERE, _NAMES, ()) == (
        "there is no table partition_lags (did you mean partition_lag?); the tables are acks, partition_lag"
    )


def test_version_that_is_gone_has_the_oldest_that_is_there(world: Any) -> None:
    world.replace("partition_lag", {})
    world.replace("partition_lag", {})
    error = _Error("DELTA_VERSION_NOT_FOUND", "Cannot time travel Delta table to version 99.")

    text = in_words(error, Tables(str(world.root)), _NAMES, ["partition_lag"])

    assert text.startswith(
        "Cannot time travel Delta table to version 99; of partition_lag the oldest version that is there is 0, of 20"
    )
    assert "and the newest 1, of 20" in text
    assert "lag_history keeps what was" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Syntax error at or near 'FORM'. SQLSTATE: 42601 (line 1, pos 9)\n\n== SQL ==\nSELECT * FORM x\n---------^^^",
            "Syntax error at or near 'FORM'. (line 1, pos 9)",
        ),
        (
            (
                "A column `lagg` cannot be resolved. Did you mean one of the following? [`lag`]. SQLSTATE: 42703; "
                "line 1 pos 7;\n'Project ['lagg]\n+- Relation"
            ),
            "A column `lagg` cannot be resolved. Did you mean one of the following? [`lag`]; line 1 pos 7",
        ),
        (
            (
                "Job aborted.\nDriver stacktrace:\n\tat org.x\nCaused by: org.apache.spark.SparkArithmeticException: "
                "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n\tat org.y"
            ),
            "Division by zero",
        ),
    ],
)
def test_first_sentence_of_spark_is_left_without_codes_plans_and_traces(text: str, shown: str) -> None:
    assert in_words(_Error("SOME_CONDITION", text), _NOWHERE, _NAMES, ()) == shown


def test_words_of_the_parser_begin_behind_an_empty_line() -> None:
    error = _Error("PARSE_SYNTAX_ERROR", "")
    error.text = (
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near '.'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\n.x"
    )

    assert in_words(error, _NOWHERE, _NAMES, ()) == "Syntax error at or near '.'. (line 1, pos 0)"
