"""Columns: what the tables are described with, and the types of columns that hold several values."""

from pyspark.sql import types as t

LONG, INT, STRING, BOOL = t.LongType(), t.IntegerType(), t.StringType(), t.BooleanType()
DOUBLE, TIME, BYTES, DATE = t.DoubleType(), t.TimestampType(), t.BinaryType(), t.DateType()


def column(name: str, kind: t.DataType, comment: str, *, nullable: bool = True) -> t.StructField:
    """A column that may be null, with what it means."""
    return t.StructField(name, kind, nullable, {"comment": comment})


def key(name: str, kind: t.DataType, comment: str) -> t.StructField:
    """A column that is never null, with what it means."""
    return column(name, kind, comment, nullable=False)


# Delta takes no NOT NULL inside arrays and maps; the comments say what is never null there.
SAMPLES = t.ArrayType(
    t.StructType([t.StructField("observed_at_ms", LONG), t.StructField("log_end_offset", LONG)]),
)
"""Bounded ring of what the log end was when, oldest first; times in ms since the epoch."""

RECENT_COMMITS = t.ArrayType(
    t.StructType(
        [
            t.StructField("committed_offset", LONG),
            t.StructField("commit_timestamp_ms", LONG),
            t.StructField("lag", LONG),
        ]
    ),
)
"""Bounded window of a partition's last commits, oldest first; lag in records when it was seen."""

PARTITIONS_BY_TOPIC = t.MapType(STRING, t.ArrayType(INT))

MEMBERS = t.ArrayType(
    t.StructType(
        [
            t.StructField("member_id", STRING),
            t.StructField("group_instance_id", STRING),
            t.StructField("client_id", STRING),
            t.StructField("client_host", STRING),
            t.StructField("rack", STRING),
            t.StructField("topics", t.ArrayType(STRING)),
            t.StructField("owned", PARTITIONS_BY_TOPIC),
            t.StructField("owned_generation", INT),
            t.StructField("assigned", PARTITIONS_BY_TOPIC),
            t.StructField("error", STRING),
        ]
    ),
)

MEMBER_IDS = t.ArrayType(STRING)

MOVES = t.ArrayType(
    t.StructType(
        [
            t.StructField("topic", STRING),
            t.StructField("partition", INT),
            t.StructField("from", STRING),
            t.StructField("to", STRING),
            t.StructField("lag", LONG),
        ]
    ),
)

PLAN = t.StructType(
    [
        t.StructField("epoch", LONG),
        t.StructField("status", STRING),
        t.StructField("why", STRING),
        t.StructField("status_at", TIME),
        t.StructField("moves", INT),
        t.StructField("moves_made", INT),
        t.StructField("published_at", TIME),
        t.StructField("predicted_drain_s", DOUBLE),
        t.StructField("realised_drain_s", DOUBLE),
    ]
)
"""A plan's outcome: open, applied, partly, refused, superseded or expired, why, and since when it is known."""
