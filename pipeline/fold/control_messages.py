"""Fold: the newest acknowledgements and orders, and the partitions that followers have handed over.

Records of one key are in one partition of their topic, so their offsets order them; hand-overs have a number each.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.fold.step import LAG_KEY
from pipeline.tables.schemas import ACK_FIELDS, ORDER_FIELDS

_KEPT_S = 7 * 86_400
"""How long control messages of a group that is not there are kept: it may be new, or deleted. Kafka's default."""
_HAND_OVERS = ("release", "taken")


def fold_acks(stored: DataFrame, events: DataFrame, groups: DataFrame, *, at_ms: int) -> DataFrame:
    """The newest acknowledgement of each kind by each member, or about each partition.

    Acknowledgements of a generation that is over do not count: Kafka has assigned every partition again.

    Args:
        stored: `schemas.ACKS`; empty under a new checkpoint, which reads the topic from its beginning.
        events: Decoded rows of kind 'ack'.
        groups: `schemas.CONSUMER_GROUPS`.
        at_ms: Clock of the batch.
    """
    names = [field.name for field in ACK_FIELDS]
    new = events.select("group_id", "ack.kind", "ack.id", *(f"ack.{name}" for name in names), "position")
    rows = stored.select("group_id", "kind", "id", *names, "position").unionByName(new)
    newest = Window.partitionBy("group_id", "kind", "id").orderBy(F.desc("position"))
    present = groups.select("group_id", F.col("generation").alias("present"))
    is_young = F.unix_millis("acked_at") > at_ms - _KEPT_S * 1000
    return (
        rows.withColumn("rank", F.row_number().over(newest))
        .where("rank = 1 and generation is not null")
        .join(present, on="group_id", how="left")
        # A generation may last for months, and a hand-over holds as long.
        .where(F.when(F.col("present").isNull(), is_young).otherwise(F.col("generation") >= F.col("present")))
        .drop("rank", "present")
    )


def fold_orders(stored: DataFrame, events: DataFrame) -> DataFrame:
    """The standing orders of each group.

    Args:
        stored: `schemas.ORDERS`; empty under a new checkpoint.
        events: Decoded rows of kind 'orders'.
    """
    names = [field.name for field in ORDER_FIELDS]
    new = events.select("group_id", *(f"orders.{name}" for name in names), "position")
    rows = stored.select("group_id", *names, "position").unionByName(new)
    newest = Window.partitionBy("group_id").orderBy(F.desc("position"))
    return (
        rows.withColumn("rank", F.row_number().over(newest))
        .where("rank = 1 and paused is not null")
        .drop("rank")
    )


def handed_over(acks: DataFrame, groups: DataFrame) -> DataFrame:
    """One row per partition that has left its owner within the present generation.

    `member_id` is its owner since; null while it is on its way, when nobody reads it. Acknowledgements of members
    that the generation does not have are of a deleted group of the same name, whose generations began again at 1.

    Args:
        acks: `schemas.ACKS`.
        groups: `schemas.CONSUMER_GROUPS`.
    """
    present = groups.select("group_id", "generation", F.explode("members.member_id").alias("member_id"))
    is_taken = F.col("kind") == "taken"
    return (
        acks.where(F.col("kind").isin(*_HAND_OVERS))
        .join(present, on=["group_id", "generation", "member_id"], how="left_semi")
        .groupBy(*LAG_KEY)
        .agg(F.max_by(F.when(is_taken, F.col("member_id")), F.struct("hop", is_taken)).alias("member_id"))
    )


def held_partitions(assigned: DataFrame, moved: DataFrame, groups: DataFrame) -> DataFrame:
    """`step.assigned_partitions`, with what followers have handed over since.

    Args:
        assigned: What the leader gave to each member.
        moved: `handed_over`.
        groups: `schemas.CONSUMER_GROUPS`.
    """
    members = groups.select(
        "group_id", "generation", "offsets_partition", F.explode("members").alias("member")
    ).select(
        "group_id",
        F.col("member.member_id").alias("member_id"),
        F.struct(
            "member.member_id",
            "member.group_instance_id",
            "member.client_id",
            "member.client_host",
            "generation",
            "offsets_partition",
        ).alias("new_owner"),
    )
    new_owners = moved.withColumn("is_moved", F.lit(True)).join(
        members, on=["group_id", "member_id"], how="left"
    )
    return (
        assigned.join(new_owners.drop("member_id"), on=list(LAG_KEY), how="left")
        .withColumn("owner", F.when(F.col("is_moved"), F.col("new_owner")).otherwise(F.col("owner")))
        .where("owner is not null")
        .select(*LAG_KEY, "owner")
    )


def control_messages_by_group(acks: DataFrame, orders: DataFrame, moved: DataFrame) -> DataFrame:
    """One row per group with control messages: `acks` of its members, `orders`, and what has `moved`.

    Args:
        acks: `schemas.ACKS`.
        orders: `schemas.ORDERS`.
        moved: `handed_over`.
    """
    plan_acks = acks.where(~F.col("kind").isin(*_HAND_OVERS))
    by_group = (
        plan_acks.groupBy("group_id").agg(
            F.collect_list(F.struct("kind", "member_id", "epoch", "why")).alias("acks")
        ),
        orders.select("group_id", F.struct("group_id", *(f.name for f in ORDER_FIELDS)).alias("orders")),
        moved.groupBy("group_id").agg(
            F.collect_list(F.struct("topic", "partition", "member_id")).alias("moved")
        ),
    )
    first, second, third = by_group
    return first.join(second, on="group_id", how="full_outer").join(third, on="group_id", how="full_outer")
