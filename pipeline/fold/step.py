"""Fold: the stored state and one batch's decoded rows, brought together. Nothing is measured here.

The last write wins by the record's offset in its partition of the offsets topic, never by a timestamp: all
records of a group are in one partition, and the clocks of coordinators differ.

When a partition of the offsets topic is read again from its start, because the position in it does not hold any
more, its rows become unconfirmed: the first record about any of them counts, whatever its position. A full reading
delivers every commit that still counts, so the rows that are still unconfirmed when it has come to the end had
their tombstone compacted away, and are dropped.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.row_keys import LAG_KEY, PARTITION_KEY

COMMIT = ("committed_offset", "leader_epoch", "commit_topic_id", "commit_timestamp", "commit_position")
OWNER = ("member_id", "group_instance_id", "client_id", "client_host", "generation", "offsets_partition")


def fold_topic_offsets(stored: DataFrame, observed: DataFrame) -> DataFrame:
    """Each known partition with what is stored (`old`) and what was observed now (`new`); either may be null.

    Args:
        stored: `schemas.TOPIC_OFFSETS`.
        observed: Decoded rows of kind 'log_offset'.
    """
    old = stored.select(*PARTITION_KEY, F.struct(*stored.columns).alias("old"))
    new = observed.select(
        *PARTITION_KEY,
        F.struct(
            "topic_id", "log_start_offset", "log_end_offset", "isolation", "observed_at_ms", "error"
        ).alias("new"),
    )
    return old.join(new, on=list(PARTITION_KEY), how="full_outer")


def missing_topics(stored: DataFrame, observed: DataFrame) -> list[str]:
    """Topics of which a partition is stored that is not deleted, and was not observed.

    Args:
        stored: `schemas.TOPIC_OFFSETS`.
        observed: Decoded rows of kind 'log_offset'.
    """
    alive = stored.where("deleted_at is null").select(*PARTITION_KEY)
    missing = alive.join(observed.select(*PARTITION_KEY), on=list(PARTITION_KEY), how="left_anti")
    return sorted(row["topic"] for row in missing.select("topic").distinct().collect())


def _still_confirmed(confirmed: Column, offsets_partition: Column, reread: Sequence[int]) -> Column:
    # Of a row without a partition nobody knows whether it is among them.
    return confirmed & ~F.coalesce(offsets_partition.isin(*reread), F.lit(True)) if reread else confirmed


def assigned_partitions(groups: DataFrame) -> DataFrame:
    """One row per partition that a member of a classic group was given: its owner.

    Members claim what they like; two of one generation that were given the same partition (an assignor's
    fault) leave one row, that of the smaller member id.
    """
    members = groups.select(
        "group_id", "generation", "offsets_partition", F.explode("members").alias("member")
    )
    topics = members.select(
        "group_id",
        "generation",
        "offsets_partition",
        *(F.col(f"member.{name}") for name in ("member_id", "group_instance_id", "client_id", "client_host")),
        F.explode("member.assigned").alias("topic", "partitions"),
    )
    return (
        topics.select(
            *(c for c in topics.columns if c != "partitions"), F.explode("partitions").alias("partition")
        )
        .groupBy(*LAG_KEY)
        .agg(F.min(F.struct(*OWNER)).alias("owner"))
    )


def newest_commits(decoded: DataFrame) -> DataFrame:
    """The newest commit or tombstone of each partition in the batch, as `new`.

    Each task has collapsed its own records; what is left to settle are a key written in both of its forms
    (record types 0 and 1) and a partition of the offsets topic read by two tasks.
    """
    fields = (
        "position",
        "offsets_partition",
        (F.col("row_kind") == "tombstone").alias("is_tombstone"),
        "committed_offset",
        "leader_epoch",
        "commit_timestamp_ms",
        "topic_id",
    )
    return (
        decoded.where(F.col("row_kind").isin("commit", "tombstone"))
        .select(*LAG_KEY, F.struct(*fields).alias("new"))
        .groupBy(*LAG_KEY)
        .agg(F.max("new").alias("new"))
    )


def fold_commits(
    stored: DataFrame,
    commits: DataFrame,
    assigned: DataFrame,
    *,
    reread: Sequence[int],
    behind: Sequence[int],
) -> DataFrame:
    """One row per partition that a group has committed or owns.

    With the stored row (`old`), the commit that now holds (top-level columns), `has_new_commit`, `is_reread`
    (it came with a full reading, and may be older than what was known) and the `owner`; each is null where there
    is none.

    Args:
        stored: `schemas.PARTITION_LAG`.
        commits: `newest_commits`.
        assigned: `assigned_partitions`.
        reread: Partitions of the offsets topic that are read from their start from this batch on.
        behind: Partitions of the offsets topic that are not read to their end yet.
    """
    key = list(LAG_KEY)
    old = stored.select(*key, F.struct(*stored.columns).alias("old"))
    joined = old.join(commits, on=key, how="full_outer").join(assigned, on=key, how="full_outer")
    stays = _still_confirmed(F.col("old.confirmed"), F.col("old.offsets_partition"), reread)
    is_newer = F.col("new").isNotNull() & (
        F.col("old.commit_position").isNull()
        | ~stays
        | (F.col("new.offsets_partition") != F.col("old.offsets_partition"))
        | (F.col("new.position") > F.col("old.commit_position"))
    )
    # Where there was no row there is nothing to confirm.
    confirmed = F.col("new").isNotNull() | F.col("old").isNull() | stays
    folded = joined.withColumn("is_newer", is_newer).select(
        *key,
        "old",
        "owner",
        (F.col("is_newer") & ~F.col("new.is_tombstone")).alias("has_new_commit"),
        F.coalesce(F.col("is_newer") & ~stays, F.lit(False)).alias("is_reread"),
        *_commit_columns(),
        confirmed.alias("confirmed"),
    )
    # A partition may be owned whose commit is gone: the owner stays, the commit does not.
    holds = F.col("confirmed") | F.col("offsets_partition").isin(*behind)
    held = {name: F.when(holds, F.col(name)) for name in COMMIT}
    owned = F.col("owner").isNotNull()
    return (
        folded.withColumns(held)
        .withColumn("confirmed", F.col("confirmed") | ~holds)
        .where(F.col("committed_offset").isNotNull() | owned)
    )


def _commit_columns() -> list[Column]:
    """The commit that holds: the new one where it is newer (all null for a tombstone), else the stored one."""

    def pick(new: Column, old: str) -> Column:
        return F.when(F.col("is_newer"), new).otherwise(F.col(f"old.{old}")).alias(old)

    def value(name: str) -> Column:
        return F.when(~F.col("new.is_tombstone"), F.col(f"new.{name}"))

    return [
        pick(value("committed_offset"), "committed_offset"),
        pick(value("leader_epoch"), "leader_epoch"),
        pick(value("topic_id"), "commit_topic_id"),
        pick(F.timestamp_millis(value("commit_timestamp_ms")), "commit_timestamp"),
        pick(F.col("new.position"), "commit_position"),
        F.coalesce("new.offsets_partition", "old.offsets_partition", "owner.offsets_partition").alias(
            "offsets_partition"
        ),
    ]
