"""The tables, column by column: type, whether it may be null, and what it means.

Every table is a plain Delta table (no deletion vectors, no column mapping) in a folder of its own under
`tables.root`. Keys:

    partition_lag    (cluster, group_id, topic, partition)   latest
    topic_offsets    (cluster, topic, partition)             latest
    consumer_groups  (cluster, group_id)                     latest
    lag_history      (cluster, group_id, topic, partition, updated_at)   append, partitioned by date
    plan_state       (cluster, group_id)                     latest; the outbox of the control topic
    member_rates     (cluster, group_id, identity)           latest
    recommendations  (cluster, group_id, created_at)         append, partitioned by date
    acks             (cluster, group_id, kind, id)           latest
    orders           (cluster, group_id)                     latest
    planner_state    (cluster)                               latest
    quarantine       (topic, partition, offset, kind)        append
"""

from dataclasses import dataclass

from pyspark.sql import types as t

_LONG, _INT, _STRING, _BOOL = t.LongType(), t.IntegerType(), t.StringType(), t.BooleanType()
_DOUBLE, _TIME, _BYTES, _DATE = t.DoubleType(), t.TimestampType(), t.BinaryType(), t.DateType()


def _column(name: str, kind: t.DataType, comment: str, *, nullable: bool = True) -> t.StructField:
    return t.StructField(name, kind, nullable, {"comment": comment})


def _key(name: str, kind: t.DataType, comment: str) -> t.StructField:
    return _column(name, kind, comment, nullable=False)


_CLUSTER = _key("cluster", _STRING, "configured name of the Kafka cluster, by default its cluster id")
_GROUP = _key("group_id", _STRING, "consumer group")
_TOPIC = _key("topic", _STRING, "topic")
_PARTITION = _key("partition", _INT, "partition number")
_UPDATED = _key("updated_at", _TIME, "time of the batch that wrote the row (UTC)")
_BATCH = _key("batch_id", _LONG, "batch of the stream that wrote the row; restarts with a new checkpoint")

# Delta takes no NOT NULL inside arrays and maps; the comments say what is never null there.
SAMPLES = t.ArrayType(
    t.StructType([t.StructField("observed_at_ms", _LONG), t.StructField("log_end_offset", _LONG)]),
)
"""Bounded ring of what the log end was when, oldest first; times in ms since the epoch."""

RECENT_COMMITS = t.ArrayType(
    t.StructType(
        [
            t.StructField("committed_offset", _LONG),
            t.StructField("commit_timestamp_ms", _LONG),
            t.StructField("lag", _LONG),
        ]
    ),
)
"""Bounded window of a partition's last commits, oldest first; lag in records when it was seen."""

PARTITIONS_BY_TOPIC = t.MapType(_STRING, t.ArrayType(_INT))

MEMBERS = t.ArrayType(
    t.StructType(
        [
            t.StructField("member_id", _STRING),
            t.StructField("group_instance_id", _STRING),
            t.StructField("client_id", _STRING),
            t.StructField("client_host", _STRING),
            t.StructField("rack", _STRING),
            t.StructField("topics", t.ArrayType(_STRING)),
            t.StructField("owned", PARTITIONS_BY_TOPIC),
            t.StructField("owned_generation", _INT),
            t.StructField("assigned", PARTITIONS_BY_TOPIC),
            t.StructField("error", _STRING),
        ]
    ),
)

MOVES = t.ArrayType(
    t.StructType(
        [
            t.StructField("topic", _STRING),
            t.StructField("partition", _INT),
            t.StructField("from", _STRING),
            t.StructField("to", _STRING),
            t.StructField("lag", _LONG),
        ]
    ),
)

PLAN = t.StructType(
    [
        t.StructField("epoch", _LONG),
        t.StructField("status", _STRING),
        t.StructField("why", _STRING),
        t.StructField("status_at", _TIME),
        t.StructField("moves", _INT),
        t.StructField("moves_made", _INT),
        t.StructField("published_at", _TIME),
        t.StructField("predicted_drain_s", _DOUBLE),
        t.StructField("realised_drain_s", _DOUBLE),
    ]
)
"""A plan's outcome: open, applied, partly, refused, superseded or expired, why, and since when it is known."""

_OFFSETS = [
    _column("log_start_offset", _LONG, "first offset still in the partition"),
    _column("log_end_offset", _LONG, "what ListOffsets(latest) answered under `isolation`"),
    _column("isolation", _STRING, "read_uncommitted (high watermark) or read_committed (last stable offset)"),
]

_MEASURES = [
    _column("committed_offset", _LONG, "next offset the group will read; null when it never committed"),
    _column("commit_timestamp", _TIME, "the group coordinator's clock at the commit"),
    *_OFFSETS,
    _column(
        "log_observed_at", _TIME, "when log start and log end were asked; an old time means no answer since"
    ),
    _column("lag", _LONG, "log end - max(committed, log start), records, >= 0; null when either is unknown"),
    _column("raw_lag", _LONG, "log end - committed, as kafka-consumer-groups prints it; may be negative"),
    _column("lag_seconds", _DOUBLE, "age of the next record to be read; 0 at the end; null when unknown"),
    _column(
        "lag_seconds_is_lower_bound", _BOOL, "the lag is older than the samples kept: at least lag_seconds"
    ),
    _column("arrival_rate", _DOUBLE, "records/s appended, moving average"),
    _column("drain_rate", _DOUBLE, "records/s the group commits, moving average"),
    _key("status", _STRING, "OK WARN STALL STOP REWIND NOT_COMMITTED EXPIRED DELETED UNKNOWN"),
    _key("assigned", _BOOL, "a live member owns the partition"),
    _column("member_id", _STRING, "owner"),
    _column("group_instance_id", _STRING, "owner's static identity, if it has one"),
    _column("client_id", _STRING, "owner's client.id"),
    _column("client_host", _STRING, "owner's address"),
    _column("generation", _INT, "generation in which the owner got it"),
    _key("provisional", _BOOL, "true until the offsets topic was read to its end, and while it is held back"),
]

PARTITION_LAG = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        _TOPIC,
        _PARTITION,
        *_MEASURES,
        _column("offsets_partition", _INT, "partition of __consumer_offsets that holds the group"),
        _column("commit_position", _LONG, "offset of the commit record there; orders the commits of a group"),
        _column("leader_epoch", _INT, "leader epoch of the commit; null when the client sent none"),
        _column(
            "commit_topic_id",
            _STRING,
            "id of the topic the commit was made in; of the topic it was read beside when the record has none",
        ),
        _column("recent_commits", RECENT_COMMITS, "last commits, oldest first: what the status is judged by"),
        _key("confirmed", _BOOL, "the commit was read under the present checkpoint"),
        _column("history_at", _TIME, "time of this partition's newest lag_history row"),
        _column(
            "history_hash",
            _LONG,
            "hash of status, owner and step of lag in that row: a new one is due when it changes",
        ),
        _UPDATED,
        _BATCH,
    ]
)

LAG_HISTORY = t.StructType(
    [
        _key("date", _DATE, "UTC day of updated_at; the table is partitioned by it"),
        _CLUSTER,
        _GROUP,
        _TOPIC,
        _PARTITION,
        *_MEASURES,
        _UPDATED,
        _BATCH,
    ]
)

TOPIC_OFFSETS = t.StructType(
    [
        _CLUSTER,
        _TOPIC,
        _PARTITION,
        *_OFFSETS,
        _column("observed_at", _TIME, "when the broker last answered for this partition"),
        _column("arrival_rate", _DOUBLE, "records/s appended, moving average"),
        _column("samples", SAMPLES, "bounded ring of (time, log end), oldest first"),
        _column("error", _STRING, "why the newest question was not answered; null when it was"),
        _column("deleted_at", _TIME, "when the brokers, asked by name, first had no such topic or partition"),
        _column("topic_id", _STRING, "Kafka's id of the topic that answered; null from brokers without ids"),
        _column(
            "topic_id_at", _TIME, "when the id was last answered; before observed_at: not with the offsets"
        ),
        _UPDATED,
        _BATCH,
    ]
)

CONSUMER_GROUPS = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        _key("group_type", _STRING, "classic, consumer (KIP-848), share or streams"),
        _column("state", _STRING, "Stable or Empty for classic groups: the log shows no state in between"),
        _column("protocol_type", _STRING, "consumer, connect, ..."),
        _column("assignor", _STRING, "selected assignor"),
        _column(
            "rebalance_protocol",
            _STRING,
            "eager or cooperative, by the assignor and what members claim; null if open",
        ),
        _column("generation", _INT, "generation of the classic group; null for other types"),
        _column("leader", _STRING, "member id of the leader"),
        _column("members", MEMBERS, "what each member subscribed, claimed and was given"),
        _column("offsets_partition", _INT, "partition of __consumer_offsets that holds the group"),
        _column("group_position", _LONG, "offset of the newest group record there"),
        _key("confirmed", _BOOL, "the group record was read under the present checkpoint"),
        _UPDATED,
        _BATCH,
    ]
)

GROUP_STATE = (
    "group_type",
    "state",
    "protocol_type",
    "assignor",
    "rebalance_protocol",
    "generation",
    "leader",
    "members",
)
"""Columns of `CONSUMER_GROUPS` that a group record fills."""

# What is decided about a group.
_DECISION = [
    _column("epoch", _LONG, "plan epoch, rising per group for ever; null when nothing was decided"),
    _key("decision", _STRING, "publish, dry_run, unchanged or abstain"),
    _column("reason", _STRING, "why, in words"),
    _column("strategy", _STRING, "assignor that made the target"),
    _column("base_generation", _INT, "generation the target starts from"),
    _column("base_hash", _STRING, "hash of the members, their subscriptions and partitions"),
    _column("target_hash", _STRING, "hash of the target: the same text means the same assignment"),
    _column("assignment", t.MapType(_STRING, t.MapType(_STRING, _STRING)), "member -> topic -> ranges"),
    _column("moves", MOVES, "partitions that change owner, lag in records"),
    _column(
        "drain_s_before",
        _DOUBLE,
        "seconds until the slowest member is drained, as assigned; null = never",
    ),
    _column("drain_s_after", _DOUBLE, "the same under the target"),
    _column("drain_s_bound", _DOUBLE, "no assignment can be faster"),
    _column("imbalance_before", _DOUBLE, "(largest - smallest) / total member lag, as assigned"),
    _column("imbalance_after", _DOUBLE, "the same under the target"),
    _column(
        "record",
        _STRING,
        "value of the control record, as published byte for byte; null in a row that withdraws a plan",
    ),
    _column("valid_until", _TIME, "readers ignore the plan after this time"),
    _column("plan", PLAN, "what became so far of the plan published before this row"),
]

PLAN_STATE = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        *_DECISION,
        _column("state", _STRING, "what the next decision has to know, as JSON; may change with any version"),
        _key("recorded_at", _TIME, "time of this group's newest row in recommendations"),
        _UPDATED,
        _BATCH,
    ]
)

RECOMMENDATIONS = t.StructType(
    [
        # Null in rows that an earlier version has written, into a table without partitions.
        _column("date", _DATE, "UTC day of created_at; the table is partitioned by it"),
        _CLUSTER,
        _GROUP,
        *_DECISION,
        _key("created_at", _TIME, "time of the batch"),
        _BATCH,
    ]
)

MEMBER_RATES = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        _key("identity", _STRING, "group instance id, or else client id, or else member id"),
        _key("rate", _DOUBLE, "records/s that the member drained when the group was decided about"),
        _column(
            "shown_rate", _DOUBLE, "records/s that it drained with a backlog; null when it never had one"
        ),
        _column("shown_at", _TIME, "when it last had a backlog"),
        _key("seen_at", _TIME, "when it was last a member"),
        _UPDATED,
        _BATCH,
    ]
)

# What the members of a group said, by kind and by whom or about what: the newest of each.
ACK_FIELDS = (
    _column("generation", _INT, "generation of the group it is about"),
    _column("epoch", _LONG, "epoch of the plan it is about"),
    _column("member_id", _STRING, "who says it"),
    _column("to_member_id", _STRING, "release: to whom"),
    _column("topic", _STRING, "release, taken: topic"),
    _column("partition", _INT, "release, taken: partition number"),
    _column("hop", _LONG, "release, taken: number of the hand-over of this partition in this generation"),
    _column("offset", _LONG, "release: next record to read"),
    _column("why", _STRING, "refused, void: why"),
    _column("acked_at", _TIME, "when, by the clock of the one who says it"),
)

ACKS = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        _key("kind", _STRING, "accepted, refused, release, taken, applied or void"),
        _key("id", _STRING, "member id, or <topic>-<partition>"),
        *ACK_FIELDS,
        _key("position", _LONG, "offset of the record in the acks topic"),
        _UPDATED,
        _BATCH,
    ]
)

ORDER_FIELDS = (
    _column("paused", _BOOL, "no plan is published"),
    _column("pause_reason", _STRING, "why, in the operator's words"),
    _column(
        "pinned", t.MapType(_STRING, _STRING), "partitions that no plan moves: topic -> ranges, * for all"
    ),
    _column("triggered_at", _TIME, "newest manual trigger"),
    _column("ordered_by", _STRING, "who gave the newest order"),
    _column("ordered_at", _TIME, "when, by that one's clock"),
)

ORDERS = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        *ORDER_FIELDS,
        _key("position", _LONG, "offset of the record in the commands topic"),
        _UPDATED,
        _BATCH,
    ]
)

PLANNER_STATE = t.StructType(
    [
        _CLUSTER,
        _key("owner", _STRING, "host, process and start time of the driver that owns the tables"),
        _key("term", _LONG, "rises with each driver that takes over; a lower term may not write"),
        _key("acquired_at", _TIME, "when it took over"),
    ]
)

QUARANTINE = t.StructType(
    [
        _CLUSTER,
        _key("topic", _STRING, "topic the record was read from"),
        _PARTITION,
        _key("offset", _LONG, "offset of the record there"),
        _column("timestamp", _TIME, "timestamp of the record"),
        _column("key", _BYTES, "raw key"),
        _column("value", _BYTES, "raw value"),
        _key(
            "kind", _STRING, "what was tried: offset_commit, group_metadata, unknown_type, ...; or left_out"
        ),
        _key("reason", _STRING, "why it could not be read; of left_out how many records, from this one on"),
        _UPDATED,
        _BATCH,
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: its folder under `tables.root`, its columns, and how it is laid out."""

    name: str
    schema: t.StructType
    partition_by: tuple[str, ...] = ()
    is_latest: bool
    """Overwritten whole by each batch that changes it (true) or appended to (false)."""


TABLES = (
    Table(name="partition_lag", schema=PARTITION_LAG, is_latest=True),
    Table(name="topic_offsets", schema=TOPIC_OFFSETS, is_latest=True),
    Table(name="consumer_groups", schema=CONSUMER_GROUPS, is_latest=True),
    Table(name="acks", schema=ACKS, is_latest=True),
    Table(name="orders", schema=ORDERS, is_latest=True),
    Table(name="planner_state", schema=PLANNER_STATE, is_latest=True),
    Table(name="plan_state", schema=PLAN_STATE, is_latest=True),
    Table(name="member_rates", schema=MEMBER_RATES, is_latest=True),
    Table(name="lag_history", schema=LAG_HISTORY, partition_by=("date",), is_latest=False),
    Table(name="recommendations", schema=RECOMMENDATIONS, partition_by=("date",), is_latest=False),
    Table(name="quarantine", schema=QUARANTINE, is_latest=False),
)

BY_NAME = {table.name: table for table in TABLES}
