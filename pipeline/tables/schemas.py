"""The tables, column by column: type, nullability and meaning.

Every table is a plain Delta table (no deletion vectors, no column mapping) in a folder of its own under
`tables.root`. Keys:

    partition_lag    (cluster, group_id, topic, partition)   latest
    topic_offsets    (cluster, topic, partition)             latest
    consumer_groups  (cluster, group_id)                     latest
    lag_history      (cluster, group_id, topic, partition, updated_at)   append, partitioned by date
    plan_state       (cluster, group_id)                     latest; the outbox of the control topic
    member_rates     (cluster, group_id, identity)           latest
    group_history    (cluster, group_id, updated_at)         append, partitioned by date
    recommendations  (cluster, group_id, created_at)         append, partitioned by date
    acks             (cluster, group_id, kind, id)           latest
    orders           (cluster, group_id)                     latest
    planner_state    (cluster)                               latest
    quarantine       (topic, partition, offset, kind)        append
"""

from dataclasses import dataclass

from pyspark.sql import types as t

from pipeline.tables.columns import (
    ACK_FIELDS,
    BOOL,
    BYTES,
    CONSUMER_GROUP_FIELDS,
    DATE,
    DECISION,
    DOUBLE,
    INT,
    LONG,
    MEASURES,
    MEMBER_IDS,
    MEMBERS,
    OFFSETS,
    ORDER_FIELDS,
    RECENT_COMMITS,
    SAMPLES,
    STRING,
    TIME,
    column,
    key,
)

_CLUSTER = key("cluster", STRING, "configured name of the Kafka cluster, by default its cluster id")
_GROUP = key("group_id", STRING, "consumer group")
_TOPIC = key("topic", STRING, "topic")
_PARTITION = key("partition", INT, "partition number")
_UPDATED = key("updated_at", TIME, "time of the batch that wrote the row (UTC)")
_BATCH = key("batch_id", LONG, "batch of the stream that wrote the row; restarts with a new checkpoint")

_UNCONFIRMED = column(
    "unconfirmed_reason",
    STRING,
    "why the row may be out of date although the offsets topic was read to its end, or is not read at all; null when "
    "the row is up to date",
)

PARTITION_LAG = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        _TOPIC,
        _PARTITION,
        *MEASURES,
        column("offsets_partition", INT, "partition of __consumer_offsets that holds the group"),
        column("commit_position", LONG, "offset of the commit record there; orders the commits of a group"),
        column("leader_epoch", INT, "leader epoch of the commit; null when the client sent none"),
        column(
            "commit_topic_id",
            STRING,
            "id of the topic of the commit; if the record has none, that of the topic known when the record was read",
        ),
        column(
            "trend",
            STRING,
            "growing, steady or falling, compared with trend_lag; null without enough commits",
        ),
        column("trend_lag", LONG, "earlier lag with which the trend compares"),
        column("trend_at", TIME, "time of trend_lag, some minutes ago"),
        column(
            "retention_seconds",
            DOUBLE,
            "seconds until Kafka may delete the first unread record, 0 when it has deleted some; null when nothing is "
            "unread, when the time is unknown, and when not only time decides",
        ),
        column("recent_commits", RECENT_COMMITS, "last commits, oldest first; the status rests on them"),
        column(
            "commit_interval_seconds",
            DOUBLE,
            "seconds within which three out of four recent commits followed the one before; null with fewer than four",
        ),
        column(
            "commit_rate",
            DOUBLE,
            "records/s between a commit at least 20 s older than the newest, and the newest; null when there is none, "
            "or when offsets or times have gone back since",
        ),
        column("commit_span_seconds", DOUBLE, "seconds between these two commits"),
        column(
            "least_lag_at_commit",
            LONG,
            "smallest lag_at_commit from the first to the second of them; null when one of the lags is unknown",
        ),
        key("confirmed", BOOL, "the commit was read under the present checkpoint"),
        _UNCONFIRMED,
        column("history_at", TIME, "time of this partition's newest lag_history row"),
        column(
            "history_hash",
            LONG,
            "hash of status, owner and step of lag in that row; when it changes, a new row is due",
        ),
        _UPDATED,
        _BATCH,
    ]
)

LAG_HISTORY = t.StructType(
    [
        key("date", DATE, "UTC day of updated_at; the table is partitioned by it"),
        _CLUSTER,
        _GROUP,
        _TOPIC,
        _PARTITION,
        *MEASURES,
        _UPDATED,
        _BATCH,
    ]
)

TOPIC_OFFSETS = t.StructType(
    [
        _CLUSTER,
        _TOPIC,
        _PARTITION,
        *OFFSETS,
        column("observed_at", TIME, "when the broker last answered for this partition"),
        column("arrival_rate", DOUBLE, "records/s appended, moving average"),
        column("samples", SAMPLES, "bounded ring of (time, log end), oldest first"),
        column("error", STRING, "why the broker did not answer the newest question; null when it did"),
        column(
            "deleted_at",
            TIME,
            "when the brokers, asked by name, first reported that there is no such topic or partition",
        ),
        column("topic_id", STRING, "Kafka's id of the topic that answered; null from brokers without ids"),
        column(
            "topic_id_at",
            TIME,
            "when a broker last gave the id; if it is before observed_at, the newest offsets came without it",
        ),
        column(
            "leader_broker",
            INT,
            "id of the leader, by metadata of the last 5 minutes; null when there is none, or it is unknown",
        ),
        column(
            "preferred_leader", INT, "broker id of the first replica, by the same metadata; null when unknown"
        ),
        column("replicas", INT, "number of replicas, by the same metadata; null when unknown"),
        column(
            "in_sync_replicas", INT, "number of replicas in sync, by the same metadata; null when unknown"
        ),
        column(
            "last_stable_offset",
            LONG,
            "offset at which read_committed consumers have to stop: the start of an open transaction, or the log end; "
            "null without an answer",
        ),
        column(
            "readable_offset",
            LONG,
            "last_stable_offset less what a transaction held back at the previous question; a consumer that has read "
            "up to here is not behind",
        ),
        _UPDATED,
        _BATCH,
    ]
)

CONSUMER_GROUPS = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        key(
            "group_type",
            STRING,
            "classic, consumer (KIP-848), share or streams; unknown when no coordinator tells",
        ),
        column(
            "state",
            STRING,
            "Stable or Empty for classic groups: the log shows no state in between; for KIP-848 ones also Assigning "
            "(the group epoch is above the target's) and Reconciling (a member is behind its target)",
        ),
        column("protocol_type", STRING, "consumer, connect, ..."),
        column("assignor", STRING, "selected assignor"),
        column(
            "rebalance_protocol",
            STRING,
            "eager or cooperative, by the assignor and the claims of members; null if they do not tell",
        ),
        column(
            "generation", INT, "of a classic group; the group epoch of a KIP-848 one; null for other types"
        ),
        column("leader", STRING, "member id of the leader"),
        column(
            "members",
            MEMBERS,
            "subscription, claims and assignment of each member, each null if the member has another protocol or its "
            "bytes cannot be read; in a KIP-848 group, assigned has all that the member owns, including what it "
            "has to give up; null when the members are unknown, as in share and streams groups",
        ),
        *CONSUMER_GROUP_FIELDS,
        column("offsets_partition", INT, "partition of __consumer_offsets that holds the group"),
        column("group_position", LONG, "offset of the newest group record there"),
        key("confirmed", BOOL, "the group record was read under the present checkpoint"),
        _UNCONFIRMED,
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
CONSUMER_GROUP_STATE = tuple(field.name for field in CONSUMER_GROUP_FIELDS)
"""Further columns that the records of KIP-848 groups fill."""

GROUP_HISTORY = t.StructType(
    [
        key("date", DATE, "UTC day of updated_at; the table is partitioned by it"),
        _CLUSTER,
        _GROUP,
        key(
            "why",
            STRING,
            "what is new since the row before, separated by commas: type_changed, joined, left, replaced (a static "
            "member has another member id), resubscribed, moved_by_plan, rebalanced (a new generation, and nothing "
            "else that is known); or gone (the group no longer has a record), returned, or first_seen (the past is "
            "unknown)",
        ),
        column("joined", MEMBER_IDS, "members that the row before did not have; null when unknown"),
        column("left", MEMBER_IDS, "members of the row before that are gone; null when unknown"),
        *(
            t.StructField(field.name, field.dataType, field.name != "group_type", field.metadata)
            for field in (CONSUMER_GROUPS[name] for name in GROUP_STATE)
        ),
        column("offsets_partition", INT, "partition of __consumer_offsets that holds the group"),
        _UPDATED,
        _BATCH,
    ]
)

PLAN_STATE = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        *DECISION,
        column("state", STRING, "what the next decision needs to know, as JSON; may change with any version"),
        key("recorded_at", TIME, "time of this group's newest row in recommendations"),
        _UPDATED,
        _BATCH,
    ]
)

RECOMMENDATIONS = t.StructType(
    [
        # Null in rows that an earlier version has written, into a table without partitions.
        column("date", DATE, "UTC day of created_at; the table is partitioned by it"),
        _CLUSTER,
        _GROUP,
        *DECISION,
        key("created_at", TIME, "time of the batch"),
        _BATCH,
    ]
)

MEMBER_RATES = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        key("identity", STRING, "group instance id, or else client id, or else member id"),
        key("rate", DOUBLE, "records/s that the member drained at the newest decision about the group"),
        column("shown_rate", DOUBLE, "records/s that it drained with a backlog; null when it never had one"),
        column("shown_at", TIME, "when it last had a backlog"),
        key("seen_at", TIME, "when it was last a member"),
        _UPDATED,
        _BATCH,
    ]
)

ACKS = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        key("kind", STRING, "accepted, refused, release, taken, applied or void"),
        key("id", STRING, "member id, or <topic>-<partition>"),
        *ACK_FIELDS,
        key("position", LONG, "offset of the record in the acks topic"),
        _UPDATED,
        _BATCH,
    ]
)

ORDERS = t.StructType(
    [
        _CLUSTER,
        _GROUP,
        *ORDER_FIELDS,
        key("position", LONG, "offset of the record in the commands topic"),
        _UPDATED,
        _BATCH,
    ]
)

PLANNER_STATE = t.StructType(
    [
        _CLUSTER,
        key("owner", STRING, "host, process and start time of the driver that owns the tables"),
        key(
            "term",
            LONG,
            "rises with each takeover, at least minutes since 1970; a lower term may not write",
        ),
        key("acquired_at", TIME, "when it took over"),
        column("unseen_epochs", LONG, "null: only drivers of earlier versions write and read it"),
    ]
)

QUARANTINE = t.StructType(
    [
        _CLUSTER,
        key("topic", STRING, "topic the record was read from"),
        _PARTITION,
        key("offset", LONG, "offset of the record there"),
        column("timestamp", TIME, "timestamp of the record"),
        column("key", BYTES, "raw key"),
        column("value", BYTES, "raw value"),
        key("kind", STRING, "what was tried: offset_commit, group_metadata, unknown_type, ...; or left_out"),
        key("reason", STRING, "why it could not be read; of left_out how many records, from this one on"),
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
    Table(name="group_history", schema=GROUP_HISTORY, partition_by=("date",), is_latest=False),
    Table(name="recommendations", schema=RECOMMENDATIONS, partition_by=("date",), is_latest=False),
    Table(name="quarantine", schema=QUARANTINE, is_latest=False),
)

BY_NAME = {table.name: table for table in TABLES}

INDEXED_COLUMNS = 4
"""First columns of each table, less those that name its folders: the log has their least and greatest values."""
