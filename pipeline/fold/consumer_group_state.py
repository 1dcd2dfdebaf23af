"""Fold: the newest records of a KIP-848 group, as a row of `schemas.CONSUMER_GROUPS`. Pure.

The state follows the rules of Kafka's `ConsumerGroup` and `ConsumerGroupMember`. A value that no record contains, or
that cannot be read, is null. Records name topics by id; an id without a known name is listed, never guessed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from assignor.protocol.kafka.consumer_group import (
    DECODERS,
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    TopicPartitions,
)
from assignor.protocol.kafka.offsets import topic_id_text
from assignor.protocol.kafka.record_types import RecordType
from pipeline.kafka.poke_member import is_poke, subscribes_to_nothing

Row = dict[str, Any]
TopicNames = Mapping[str, str]
"""Topic names by topic id, in Kafka's notation."""

_NO_EPOCH = 0
"""Kafka's assignment epoch before the first target assignment."""
_METADATA = RecordType.CONSUMER_GROUP_MEMBER_METADATA
_TARGET = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
_CURRENT = RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
_WHAT = {_METADATA: "metadata", _TARGET: "target assignment", _CURRENT: "current assignment"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The records of a group, decoded."""

    records: Mapping[tuple[int, str], Row]
    values: Mapping[tuple[int, str], Any]
    """Values of the records that can be read."""

    def error(self, record_type: RecordType, name: str = "") -> str | None:
        """Return why the record cannot be read; None if it can, or if there is none."""
        record = self.records.get((record_type, name))
        return None if record is None else record["error"]

    def value(self, record_type: RecordType, name: str = "", *, without: Any = None) -> Any:
        """Value of the record; None if it cannot be read.

        Args:
            record_type: Type of the record.
            name: Member id or regular expression.
            without: Value to return if there is no record.
        """
        key = record_type, name
        return self.values.get(key) if key in self.records else without

    def written_at_ms(self, record_type: RecordType, name: str = "") -> int | None:
        """When the coordinator wrote the record; None if that is not known."""
        record = self.records.get((record_type, name))
        return None if record is None else record["written_at_ms"]


def group_row(records: Iterable[Row], topic_names: TopicNames) -> Row:
    """Columns of `schemas.CONSUMER_GROUPS` that the records fill.

    Args:
        records: The newest record of each key: `record_type`, `record_key`, `written_at_ms`, `value` and `error`.
        topic_names: Of topics that exist.
    """
    kept = {(record["record_type"], record["record_key"]): record for record in records}
    values = {
        key: DECODERS[RecordType(key[0])](record["value"])
        for key, record in kept.items()
        if record["value"] is not None
    }
    found = _Found(records=kept, values=values)
    epoch: int | None = found.value(RecordType.CONSUMER_GROUP_METADATA)
    target_epoch = found.value(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, without=_NO_EPOCH)
    # A member that has only a target has left, or has not joined yet: the records of a change are written together.
    joined = {name for record_type, name in kept if record_type in (_METADATA, _CURRENT)}
    ids = sorted(name for name in joined if not _is_poke(found.value(_METADATA, name)))
    state = _state(found, ids, epoch, target_epoch)
    # None seen is not none, while nobody has said that the group is empty.
    is_known = bool(ids) or state is not None
    return {
        "group_type": "consumer",
        "state": state,
        "assignor": _assignor(found, ids),
        "generation": epoch,
        "members": [_member(found, one, topic_names) for one in ids] if is_known else None,
        "target_epoch": target_epoch,
        "reconciliation": [_reconciliation(found, one, target_epoch, topic_names) for one in ids]
        if is_known
        else None,
    }


def _is_poke(metadata: MemberMetadata | None) -> bool:
    if metadata is None:
        return False
    reads_nothing = subscribes_to_nothing(metadata.topic_names, metadata.topic_regex)
    return is_poke(metadata.client_id, reads_nothing=reads_nothing)


def _state(found: _Found, ids: Iterable[str], epoch: int | None, target_epoch: int | None) -> str | None:
    if epoch is None:
        return None
    if not ids:
        return "Empty"
    if target_epoch is None:
        return None
    if epoch > target_epoch:
        return "Assigning"
    each = [_is_reconciled(_current(found, one), target_epoch) for one in ids]
    if None in each:
        return None
    return "Stable" if all(each) else "Reconciling"


def _current(found: _Found, member_id: str) -> CurrentAssignment | None:
    current: CurrentAssignment | None = found.value(_CURRENT, member_id)
    return current


def _is_reconciled(current: CurrentAssignment | None, target_epoch: int | None) -> bool | None:
    """Same rule as `ConsumerGroupMember.isReconciledTo`; None if unknown."""
    if current is None or target_epoch is None:
        return None
    return current.state == MemberState.STABLE and current.member_epoch == target_epoch


def _assignor(found: _Found, ids: Iterable[str]) -> str | None:
    """The server assignor that most members ask for; None when none does, and when two are asked for as often.

    The broker's default, which it takes where nobody asks for one, stands in no record.
    """
    metadata = [found.value(_METADATA, one) for one in ids]
    votes = Counter(one.server_assignor for one in metadata if one is not None and one.server_assignor)
    most = max(votes.values(), default=0)
    wanted = [str(name) for name, count in votes.items() if count == most]
    return wanted[0] if len(wanted) == 1 else None


def _member(found: _Found, member_id: str, topic_names: TopicNames) -> Row:
    metadata: MemberMetadata | None = found.value(_METADATA, member_id)
    current = _current(found, member_id)
    assigned, unresolved = (
        (None, []) if current is None else _named(current.assigned + current.pending_revocation, topic_names)
    )
    return {
        "member_id": member_id,
        "group_instance_id": metadata.instance_id if metadata else None,
        "client_id": metadata.client_id if metadata else None,
        "client_host": metadata.client_host if metadata else None,
        "rack": (metadata.rack_id or None) if metadata else None,
        "topics": _subscribed(found, metadata),
        "owned": None,
        "owned_generation": None,
        "assigned": assigned,
        "error": _error(found, member_id, unresolved),
    }


def _error(found: _Found, member_id: str, unresolved: list[str]) -> str | None:
    errors = [
        f"{what}: {error}"
        for record_type, what in _WHAT.items()
        if (error := found.error(record_type, member_id)) is not None
    ]
    if (_METADATA, member_id) not in found.records:
        errors.append("metadata: no record")
    if unresolved:
        errors.append(f"assigned topics with these ids are unknown: {', '.join(unresolved)}")
    return "; ".join(errors) or None


def _subscribed(found: _Found, metadata: MemberMetadata | None) -> list[str] | None:
    """Topics by name, and those that match the regex by what the broker has found; None where that is not known."""
    if metadata is None:
        return None
    names = set(metadata.topic_names)
    if metadata.topic_regex:
        resolved = found.value(
            RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, metadata.topic_regex, without=None
        )
        if resolved is None:
            return None
        names.update(resolved.topics)
    return sorted(names)


def _reconciliation(found: _Found, member_id: str, target_epoch: int | None, topic_names: TopicNames) -> Row:
    metadata: MemberMetadata | None = found.value(_METADATA, member_id)
    current = _current(found, member_id)
    target: TopicPartitions | None = found.value(_TARGET, member_id, without=())
    wanted, unresolved = (None, []) if target is None else _named(target, topic_names)
    pending = None
    if current is not None:
        pending, of_pending = _named(current.pending_revocation, topic_names)
        _, of_assigned = _named(current.assigned, topic_names)
        unresolved = sorted({*unresolved, *of_pending, *of_assigned})
    return {
        "member_id": member_id,
        "member_epoch": current.member_epoch if current else None,
        "previous_member_epoch": current.previous_member_epoch if current else None,
        "state": _member_state(current),
        "target": wanted,
        "pending_revocation": pending,
        "topic_regex": (metadata.topic_regex or None) if metadata else None,
        "rebalance_timeout_ms": _timeout(metadata),
        "server_assignor": (metadata.server_assignor or None) if metadata else None,
        "is_classic": None if metadata is None else metadata.classic is not None,
        "behind_since": _behind_since(found, member_id, target_epoch),
        "unresolved_topic_ids": unresolved,
    }


def _timeout(metadata: MemberMetadata | None) -> int | None:
    if metadata is None or metadata.rebalance_timeout_ms < 0:
        return None
    return metadata.rebalance_timeout_ms


def _member_state(current: CurrentAssignment | None) -> str | None:
    if current is None or current.state not in set(MemberState):
        return None
    return MemberState(current.state).name


def _behind_since(found: _Found, member_id: str, target_epoch: int | None) -> datetime | None:
    """Since when the member is behind its target assignment; None when it is not, and when that is not known.

    A member that was told to give up partitions, or that waits for some, is so since its record; one that has not heard
    of the target yet, since the target was made.
    """
    current = _current(found, member_id)
    if current is None or _is_reconciled(current, target_epoch) is not False:
        return None
    # A static member that is away for a moment, and a state of another version, tell nothing of it.
    if current.member_epoch < 0 or current.state not in set(MemberState):
        return None
    if current.state == MemberState.STABLE:
        at_ms = found.written_at_ms(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA)
    else:
        at_ms = found.written_at_ms(_CURRENT, member_id)
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, tz=timezone.utc)


def _named(topics: TopicPartitions, topic_names: TopicNames) -> tuple[dict[str, list[int]], list[str]]:
    """Partitions by name of their topic, sorted; and ids of topics that cannot be named."""
    by_name: dict[str, set[int]] = {}
    unresolved = set[str]()
    for topic_id, partitions in topics:
        text = topic_id_text(topic_id)
        if not partitions:
            continue
        if text in topic_names:
            by_name.setdefault(topic_names[text], set()).update(partitions)
        else:
            unresolved.add(text)
    return {name: sorted(by_name[name]) for name in sorted(by_name)}, sorted(unresolved)
