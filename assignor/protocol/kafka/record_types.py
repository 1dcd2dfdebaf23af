"""Record types of `__consumer_offsets`: the first two bytes of a key, by Kafka's names.

Source: Kafka's `CoordinatorRecordType`. Type 18 is not assigned.
"""

from enum import Enum, IntEnum, unique


@unique
class RecordType(IntEnum):
    """What a record of the offsets topic is about."""

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_PARTITION_METADATA = 9
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


@unique
class GroupType(Enum):
    """Protocol family of a group, as `kafka-consumer-groups --list --type` names it."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


KNOWN_TYPES = frozenset(RecordType)
"""Types that Kafka has given a meaning; every other is skipped and counted."""

OFFSET_COMMIT_TYPES = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)
"""Types whose key is (group id, topic, partition)."""

_FAMILIES = (
    ("SHARE_GROUP_", GroupType.SHARE),
    ("STREAMS_GROUP_", GroupType.STREAMS),
    ("CONSUMER_GROUP_", GroupType.CONSUMER),
    ("GROUP_", GroupType.CLASSIC),
)


def group_type_of(record_type: RecordType) -> GroupType | None:
    """The group type that a record implies, or None for offset commits, which groups of any type write."""
    return next((kind for prefix, kind in _FAMILIES if record_type.name.startswith(prefix)), None)
