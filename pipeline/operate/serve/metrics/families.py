"""Every family that `/metrics` can have: name and meaning. Labels and units: deploy/docs/metrics.md."""

from pipeline.exposition import Family

# kafka-lag-exporter (seglo).
SEGLO_LATEST = Family("kafka_partition_latest_offset", "Log end offset of a partition")
SEGLO_EARLIEST = Family("kafka_partition_earliest_offset", "Log start offset of a partition")
SEGLO_OFFSET = Family("kafka_consumergroup_group_offset", "Last committed offset of a group")
SEGLO_LAG = Family("kafka_consumergroup_group_lag", "Records that a group has yet to read")
SEGLO_LAG_SECONDS = Family("kafka_consumergroup_group_lag_seconds", "Age of the next record to be read")
SEGLO_MAX_LAG = Family("kafka_consumergroup_group_max_lag", "Largest lag of a partition of a group")
SEGLO_MAX_LAG_SECONDS = Family(
    "kafka_consumergroup_group_max_lag_seconds", "Largest age of a next record of a group"
)
SEGLO_SUM_LAG = Family("kafka_consumergroup_group_sum_lag", "Lag of all partitions of a group")
SEGLO_TOPIC_SUM_LAG = Family(
    "kafka_consumergroup_group_topic_sum_lag", "Lag of all partitions of a topic of a group"
)
SEGLO_POLL_TIME = Family("kafka_consumergroup_poll_time_ms", "How long the newest batch took")

# kafka_exporter (danielqsj).
EXPORTER_LAG = Family("kafka_consumergroup_lag", "Records that a group has yet to read")
EXPORTER_OFFSET = Family("kafka_consumergroup_current_offset", "Last committed offset of a group")
EXPORTER_LAG_SUM = Family("kafka_consumergroup_lag_sum", "Lag of all partitions of a topic of a group")
EXPORTER_OFFSET_SUM = Family(
    "kafka_consumergroup_current_offset_sum", "Committed offsets of all partitions of a topic of a group"
)
EXPORTER_MEMBERS = Family("kafka_consumergroup_members", "Members of a group")
EXPORTER_PARTITIONS = Family("kafka_topic_partitions", "Partitions of a topic")
EXPORTER_LATEST = Family("kafka_topic_partition_current_offset", "Log end offset of a partition")
EXPORTER_OLDEST = Family("kafka_topic_partition_oldest_offset", "Log start offset of a partition")
EXPORTER_BUILD = Family(
    "kafka_exporter_build_info", "1, for pages that take their variables from its labels; lagwise writes it"
)
EXPORTER_BROKERS = Family("kafka_brokers", "Live brokers")
EXPORTER_LEADER = Family("kafka_topic_partition_leader", "Broker id of the leader of a partition")
EXPORTER_IS_PREFERRED = Family(
    "kafka_topic_partition_leader_is_preferred", "1 if the leader of a partition is its preferred one"
)
EXPORTER_REPLICAS = Family("kafka_topic_partition_replicas", "Replicas of a partition")
EXPORTER_IN_SYNC = Family("kafka_topic_partition_in_sync_replica", "Replicas of a partition that are in sync")
EXPORTER_UNDER_REPLICATED = Family(
    "kafka_topic_partition_under_replicated_partition", "1 if a replica of a partition is not in sync"
)

# Groups.
GROUP_PARTITIONS = Family("lagwise_group_partitions", "Partitions of a group by status")
GROUP_DOUBTFUL = Family(
    "lagwise_group_doubtful_partitions", "Partitions of a group whose figures are in doubt"
)
GROUP_PROVISIONAL = Family("lagwise_group_provisional", "1 while some row of the group is provisional")
GROUP_MEMBERS = Family("lagwise_group_members", "Members of a group")
GROUP_MEMBERS_IDLE = Family("lagwise_group_members_idle", "Members of a group that own no partition")
GROUP_MEMBERS_STUCK = Family(
    "lagwise_group_members_stuck",
    "Members behind their target assignment for longer than their rebalance timeout",
)
GROUP_GENERATION = Family("lagwise_group_generation", "Generation of a group")
GROUP_LAG_AT_COMMIT = Family(
    "lagwise_group_lag_at_commit_records", "Lag of all partitions of a group when each was committed last"
)
GROUP_ARRIVAL = Family(
    "lagwise_group_arrival_records_per_second", "Records appended to the partitions of a group"
)
GROUP_DRAIN = Family("lagwise_group_drain_records_per_second", "Records that a group commits")
GROUP_RETENTION = Family(
    "lagwise_group_retention_seconds", "Least time until unread records of a group may be deleted"
)
GROUP_CAPACITY = Family(
    "lagwise_group_capacity_ratio", "Arrival rate of a group divided by the observed capacity of its members"
)
GROUP_SKEW = Family(
    "lagwise_group_lag_skew", "Largest minus smallest lag of a member, divided by the lag of all members"
)
MEMBER_LAG = Family("lagwise_member_lag_records", "Lag of the partitions that a member owns")
MEMBER_DRAIN = Family(
    "lagwise_member_drain_records_per_second", "Records committed of the partitions of a member"
)

# Plans.
PLAN_STATE = Family("lagwise_plan_state", "1 for what was decided last, and for what became of the last plan")
PLAN_HELD_BACK = Family("lagwise_plan_held_back", "1 for the guard that holds a plan back")
PLAN_DRAIN_SECONDS = Family(
    "lagwise_plan_drain_seconds", "Time until the slowest member of a group is drained"
)
PLAN_MOVES = Family("lagwise_plan_moves", "Partitions that change their owner")
PLAN_ACKS = Family("lagwise_plan_acks", "Members that have acknowledged the newest plan, by answer")
PLAN_ACKS_MISSING = Family(
    "lagwise_plan_acks_missing", "Members that the open plan needs, and that have not answered"
)
PLAN_EPOCH = Family("lagwise_plan_epoch", "Epoch of the newest plan of a group")
PLAN_PUBLISHED = Family(
    "lagwise_plan_published_timestamp_seconds", "When the newest plan was first published"
)
PLAN_EFFECT = Family("lagwise_plan_effect", "1 for what the newest plan did to the members that it concerns")
PLAN_PROBATION = Family(
    "lagwise_plan_probation_until_timestamp_seconds", "When a group gets plans again after one hurt it"
)
PLAN_VALID_UNTIL = Family("lagwise_plan_valid_until_timestamp_seconds", "When the open plan expires")

# lagwise itself; more in `pipeline.exposition`.
TABLES_READABLE = Family(
    "lagwise_tables_readable", "1 while the tables of a cluster can be read, where one process shows several"
)
TABLES_AGE = Family("lagwise_tables_age_seconds", "Age of the newest batch in the tables")
DRIVER_TERM = Family("lagwise_driver_term", "Term of the driver that owns the tables")
DEGRADED = Family("lagwise_metrics_degraded", "1 while max_series makes metrics coarser than configured")
SERIES = Family("lagwise_metrics_series", "Series that the configured granularity has")
