"""Columns: how a column is described, columns that several tables share, and types of columns with several values."""

from pyspark.sql import types as t

LONG, INT, STRING, BOOL = t.LongType(), t.IntegerType(), t.StringType(), t.BooleanType()
DOUBLE, TIME, BYTES, DATE = t.DoubleType(), t.TimestampType(), t.BinaryType(), t.DateType()


def column(name: str, kind: t.DataType, comment: str, *, nullable: bool = True) -> t.StructField:
    """A column that may be null, with its meaning."""
    return t.StructField(name, kind, nullable, {"comment": comment})


def key(name: str, kind: t.DataType, comment: str) -> t.StructField:
    """A column that is never null, with its meaning."""
    return column(name, kind, comment, nullable=False)


OFFSETS = [
    column("log_start_offset", LONG, "first offset still in the partition"),
    column("log_end_offset", LONG, "answer to ListOffsets(latest) under `isolation`"),
    column("isolation", STRING, "read_uncommitted (high watermark) or read_committed (last stable offset)"),
]
"""Start and end of a log."""

MEASURES = [
    column("committed_offset", LONG, "next offset that the group will read; null when it never committed"),
    column(
        "commit_timestamp",
        TIME,
        'time of the commit by the group coordinator\'s clock; null with source.offsets = "admin"',
    ),
    *OFFSETS,
    column(
        "log_observed_at",
        TIME,
        "when lagwise asked for log start and log end; an old time means that no broker has answered since",
    ),
    column(
        "lag",
        LONG,
        "log end - max(committed, log start), records, >= 0; null when either is unknown, or when the commit is beyond "
        "the log end",
    ),
    column("raw_lag", LONG, "log end - committed, as kafka-consumer-groups prints it; may be negative"),
    column(
        "lag_at_commit",
        LONG,
        "records between the committed offset and the log end at the time of the newest commit, less what an open "
        "transaction held back; from 0 to lag; null without samples close to that time",
    ),
    column(
        "lag_seconds", DOUBLE, "age of the next record to read; 0 at the end of the log; null when unknown"
    ),
    column(
        "lag_seconds_is_lower_bound",
        BOOL,
        "true: the record is older than the stored samples, or came while none were taken: at least lag_seconds",
    ),
    column("arrival_rate", DOUBLE, "records/s appended, moving average"),
    column("drain_rate", DOUBLE, "records/s that the group commits, moving average"),
    key("status", STRING, "OK WARN STALL STOP REWIND NOT_COMMITTED EXPIRED DELETED UNKNOWN"),
    key("assigned", BOOL, "a live member owns the partition"),
    column("member_id", STRING, "owner"),
    column("group_instance_id", STRING, "owner's static identity, if it has one"),
    column("client_id", STRING, "owner's client.id"),
    column("client_host", STRING, "owner's address"),
    column("generation", INT, "generation in which the owner got it"),
    key(
        "provisional",
        BOOL,
        "true until the offsets topic has been read to its end, and while something holds it back",
    ),
]
"""Measurements of a group's partition, now and in the history."""

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
"""Bounded window of a partition's last commits, oldest first; lag in records when each was made."""

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

RECONCILIATION = t.ArrayType(
    t.StructType(
        [
            t.StructField("member_id", STRING),
            t.StructField("member_epoch", INT),
            t.StructField("previous_member_epoch", INT),
            t.StructField("state", STRING),
            t.StructField("target", PARTITIONS_BY_TOPIC),
            t.StructField("pending_revocation", PARTITIONS_BY_TOPIC),
            t.StructField("topic_regex", STRING),
            t.StructField("rebalance_timeout_ms", INT),
            t.StructField("server_assignor", STRING),
            t.StructField("is_classic", BOOL),
            t.StructField("behind_since", TIME),
            t.StructField("unresolved_topic_ids", t.ArrayType(STRING)),
        ]
    ),
)
"""Progress of the members of a KIP-848 group, by member id; states by Kafka's names."""

GROUP_RECORDS = t.ArrayType(
    t.StructType(
        [
            t.StructField("record_type", INT),
            t.StructField("record_key", STRING),
            t.StructField("position", LONG),
            t.StructField("written_at_ms", LONG),
            t.StructField("value", BYTES),
            t.StructField("error", STRING),
        ]
    ),
)
"""Records of a group as Kafka wrote them, one of each key: member id, regular expression, or empty."""

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

# What is decided about a group.
DECISION = [
    column("epoch", LONG, "plan epoch, which only rises within a group; null when nothing was decided"),
    key("decision", STRING, "publish, dry_run, advice, awaiting_approval, unchanged or abstain"),
    column("reason", STRING, "why, in words"),
    column("strategy", STRING, "assignor that made the target"),
    column("base_generation", INT, "generation the target starts from"),
    column("base_hash", STRING, "hash of the members, their subscriptions and partitions"),
    column("target_hash", STRING, "hash of the target: the same text means the same assignment"),
    column(
        "assignment",
        t.MapType(STRING, t.MapType(STRING, STRING)),
        "target: member -> topic -> ranges of partitions",
    ),
    column(
        "moves",
        MOVES,
        "partitions that change owner; lag has the records that the plan counted: the lag at the commit and, once the "
        "next commit is late, the records that have arrived since it was due",
    ),
    column(
        "drain_s_before",
        DOUBLE,
        "seconds until the slowest member has drained its lag, as assigned; null: never or unknown, see "
        "capacity_known",
    ),
    column("drain_s_after", DOUBLE, "the same under the target"),
    column("drain_s_bound", DOUBLE, "the same under the best assignment possible; no assignment is faster"),
    column(
        "capacity_known",
        BOOL,
        "true: the speed of the members is known, and a drain_s that is null means never; false: it is unknown, and so "
        "are the times; null without a target, and in rows of earlier versions",
    ),
    column("imbalance_before", DOUBLE, "(largest - smallest) / total member lag, as assigned"),
    column("imbalance_after", DOUBLE, "the same under the target"),
    column(
        "record",
        STRING,
        "value of the control record, as published byte for byte; null in a row that withdraws a plan",
    ),
    column(
        "valid_until",
        TIME,
        "readers ignore the plan after this time; until then one that awaits approval may be approved",
    ),
    column("awaiting_since", TIME, "since when the plan awaits approval; null for other decisions"),
    column("plan", PLAN, "outcome so far of the plan published before this row"),
    column(
        "plan_effect", STRING, "effect of that plan: helped, hurt or cannot tell; null until it is judged"
    ),
    column("plan_effect_why", STRING, "evidence for the effect"),
    column(
        "probation_until",
        TIME,
        "the group gets no plan before this time, because one hurt; null without a probation",
    ),
]

# Newest acknowledgement of the members of a group, by kind, member and subject.
ACK_FIELDS = (
    column("generation", INT, "generation of the group that it refers to"),
    column("epoch", LONG, "epoch of the plan that it refers to"),
    column("member_id", STRING, "member that sent it"),
    column("to_member_id", STRING, "release: the member that takes the partition"),
    column("topic", STRING, "release, taken: topic"),
    column("partition", INT, "release, taken: partition number"),
    column("hop", LONG, "release, taken: number of the hand-over of this partition in this generation"),
    column("offset", LONG, "release: next record to read"),
    column("why", STRING, "refused, void: the reason"),
    column("acked_at", TIME, "when, by the member's clock"),
)

ORDER_FIELDS = (
    column("paused", BOOL, "no plan is published"),
    column("pause_reason", STRING, "reason for the pause, in the operator's words"),
    column("pinned", t.MapType(STRING, STRING), "partitions that no plan moves: topic -> ranges, * for all"),
    column("triggered_at", TIME, "newest manual trigger"),
    column("resumed_at", TIME, "newest resume, which ends a probation"),
    column("approved_target_hash", STRING, "target_hash of the plan that was approved last"),
    column("approved_base_hash", STRING, "its base_hash"),
    column("approval_reason", STRING, "reason for the approval, in the operator's words"),
    column("approved_by", STRING, "who approved it"),
    column("approved_at", TIME, "when, by the operator's clock"),
    column("ordered_by", STRING, "who gave the newest order"),
    column("ordered_at", TIME, "when, by the operator's clock"),
)

CONSUMER_GROUP_FIELDS = (
    column(
        "target_epoch",
        INT,
        "KIP-848: epoch of the target assignment; null for other types, and when unknown",
    ),
    column(
        "reconciliation",
        RECONCILIATION,
        "KIP-848: progress of each member towards its target assignment: epochs, target, partitions that it still "
        "owns and has to give up, what it asked for, since when it is behind, and ids of unknown topics",
    ),
    column(
        "records",
        GROUP_RECORDS,
        "KIP-848: the newest records of the group as Kafka wrote them, from which the other columns are derived",
    ),
)
"""Columns that the records of KIP-848 groups fill, in addition to those of all groups."""
