"""Source: the groups that all brokers list."""

from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaException

from pipeline.kafka.asking import answer, in_words
from pipeline.kafka.client import admin_of
from pipeline.kafka.sources.groups.settings import GroupsSettings, ListedGroup, Listing

_TYPES = {ConsumerGroupType.CLASSIC: "classic", ConsumerGroupType.CONSUMER: "consumer"}
_STATES = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}


def listed(settings: GroupsSettings) -> Listing:
    """The wanted groups, and why the list may be incomplete; errors of brokers are never raised."""
    try:
        # Without this reference, the client would be collected before the answer comes.
        admin = admin_of(settings.properties)
        asked = admin.list_consumer_groups(request_timeout=settings.request_timeout_s)
        found = answer(asked, settings.request_timeout_s)
    except KafkaException as failure:
        return Listing(error=f"groups could not be listed: {in_words(failure)}")
    wanted = settings.wanted
    groups = {
        one.group_id: ListedGroup(one.group_id, type_of(one), state_of(one))
        for one in found.valid or ()
        if wanted.admits(one.group_id)
    }
    return Listing(groups=tuple(groups[name] for name in sorted(groups)), error=_why_incomplete(found.errors))


def _why_incomplete(errors: list[Any] | None) -> str | None:
    if not errors:
        return None
    first = errors[0]
    text = in_words(first) if isinstance(first, KafkaException) else str(first)
    return f"{len(errors)} broker(s) did not list their groups: {text}"


def type_of(group: Any) -> str:
    """Type of a listed or described group, as the tables name it."""
    kind = getattr(group, "type", ConsumerGroupType.UNKNOWN)
    return _TYPES.get(kind, "unknown")


def state_of(group: Any) -> str | None:
    """Kafka's name of the state of a listed or described group; None if the client knows none."""
    return _STATES.get(getattr(group, "state", ConsumerGroupState.UNKNOWN))
