"""Rows of an answer as Arrow, for all types of Spark."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

# Arrow, or what prints it, has no such values, or takes a time without zone for one in UTC.
_AS_TEXT = (t.YearMonthIntervalType, t.CalendarIntervalType, t.TimestampNTZType, t.VariantType)
_KEYS = (t.StringType, t.IntegralType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of a statement."""

    rows: pa.Table
    """Rows with unique column names."""
    is_cut: bool
    """There are more rows."""


def answer(spark: SparkSession, statement: str, *, most: int | None) -> Answer:
    """Run it, for at most this many rows.

    Raises:
        PySparkException: It cannot be run, or fails.
    """
    found = spark.sql(statement)
    found = found if most is None else found.limit(most + 1)
    rows = _printable(found).toArrow()
    return Answer(rows=rows.slice(0, most), is_cut=most is not None and rows.num_rows > most)


def _printable(found: DataFrame) -> DataFrame:
    named = found.toDF(*distinct(found.columns))
    return named.select(
        *(
            column.cast("string").alias(field.name) if is_text_only(field.dataType) else column
            for field in named.schema
            for column in (F.col("`{}`".format(field.name.replace("`", "``"))),)
        )
    )


def distinct(names: Iterable[str]) -> list[str]:
    """Return the names in order; add `_2` and so on to repeated ones, ignoring case."""
    taken: set[str] = set()
    return [_free(name, taken) for name in names]


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free.lower() in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free.lower())
    return free


def is_text_only(kind: t.DataType) -> bool:
    """Return whether values of this type can only be shown as Spark's text."""
    if isinstance(kind, t.MapType) and not isinstance(kind.keyType, _KEYS):
        return True
    return isinstance(kind, _AS_TEXT) or any(map(is_text_only, _inner(kind)))


def _inner(kind: t.DataType) -> Iterator[t.DataType]:
    if isinstance(kind, t.ArrayType):
        yield kind.elementType
    elif isinstance(kind, t.MapType):
        yield kind.valueType
    elif isinstance(kind, t.StructType):
        yield from (field.dataType for field in kind)
