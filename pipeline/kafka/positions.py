"""Positions: how far each Kafka partition was read, what a batch reads next, and whether a position still holds.

Positions are stored in the same Delta commits as the rows they led to (`stamp.Stamp`), so tables and positions are
lost, kept and restored together. Pure: answers of brokers come in, spans to read come out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pipeline.clock import duration
from pipeline.placement import placed

PartitionKey: TypeAlias = tuple[str, int]
"""Topic and partition number."""

UNKNOWN_EPOCH = -1
NEVER_READ = "it was not read before"
MAY_HAVE_MISSED_DELETIONS = "deletions may have been missed"
TRUNCATED = "log truncated"
"""Start of the error of a span whose position no longer holds, so that its log must be read again."""
REFUSED = "this user may not read the topic"
"""Start of the error of a span that its leader refuses to serve."""
_MOST_CONTROL_RECORDS = 50_000
"""Every follower may write them, and the rows of distinct ones, some kilobytes each, all reach the driver."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where reading continues."""

    offset: int
    """Offset of the next record to read."""
    leader_epoch: int = UNKNOWN_EPOCH
    """Leader epoch of the last record read, from which Kafka detects a truncation of the log (KIP-320)."""
    at_end_ms: int = 0
    """When it was last at the end of its log, or reading began. Tombstones written since then expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Ends of a partition's log, as its leader reports them."""

    log_start: int
    stable: int
    """Last stable offset: `read_committed` ends here."""
    high: int
    """High watermark."""


Answer: TypeAlias = End | str
"""The leader's answer, or the reason why there is none."""
Positions: TypeAlias = Mapping[PartitionKey, Position]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Records of one partition that a batch reads: from `start` up to, not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int
    leader_epoch: int = UNKNOWN_EPOCH

    @property
    def key(self) -> PartitionKey:
        """Topic and partition number."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What a batch reads."""

    spans: tuple[Span, ...] = ()
    reread: Mapping[PartitionKey, str] = field(default_factory=dict)
    """Partitions that are read from their log start, and why."""
    left: int = 0
    """Records that the limit leaves to later batches."""
    beheaded: frozenset[PartitionKey] = frozenset()
    """Those of `reread` whose logs have lost their beginning, so that rows without a record may still be true."""
    impatient: tuple[PartitionKey, ...] = ()
    """Those of `reread` that the previous batch read, but longer ago than tombstones are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of what a batch reads, and of the age of a valid position."""

    most_records: int
    """Limit for all spans together; they share a large backlog in proportion."""
    tombstones_kept_ms: Mapping[str, int | None]
    """`delete.retention.ms` by topic, None if unknown: a reader that was away for longer may have missed a deletion."""
    tolerated_ms: int
    """Its value where it is unknown, for partitions that are not in `followed`."""
    followed: frozenset[PartitionKey] = frozenset()
    """Partitions that the previous batch read, however long it took."""
    control_topics: frozenset[str] = frozenset()
    """Topics of acknowledgements and orders; a batch reads at most `_MOST_CONTROL_RECORDS` of them together."""


def choose_spans(
    positions: Positions,
    answers: Mapping[PartitionKey, Answer],
    *,
    distrusted: Mapping[PartitionKey, str],
    limits: Limits,
    now_ms: int,
) -> Intake:
    """The spans to read next, and the partitions whose stored position no longer holds.

    A partition whose leader did not answer is left out: whether its position holds is unknown, too.

    Args:
        positions: How far each partition was read; a partition without one is new.
        answers: Present answers of the leaders.
        distrusted: Partitions to read again whatever the answer, with the reason.
        limits: See `Limits`.
        now_ms: Clock of the batch.
    """
    reread: dict[PartitionKey, str] = {}
    beheaded: set[PartitionKey] = set()
    wanted: list[Span] = []
    for key, end in sorted((key, answer) for key, answer in answers.items() if isinstance(answer, End)):
        position = positions.get(key)
        why = distrusted.get(key) or _no_longer_holds(key, position, end, limits, now_ms)
        if why or position is None:
            reread[key] = why or NEVER_READ
            if end.log_start > 0 and not _has_lost_its_tail(position, end, why):
                beheaded.add(key)
            position = Position(end.log_start)
        if position.offset < end.stable:
            wanted.append(
                Span(
                    topic=key[0],
                    partition=key[1],
                    start=position.offset,
                    end=end.stable,
                    leader_epoch=position.leader_epoch,
                )
            )
    spans = _within_limits(wanted, limits)
    return Intake(
        spans=spans,
        reread=reread,
        left=_records(wanted) - _records(spans),
        beheaded=frozenset(beheaded),
        impatient=tuple(
            key
            for key, why in reread.items()
            if key in limits.followed and why.endswith(MAY_HAVE_MISSED_DELETIONS)
        ),
    )


def _has_lost_its_tail(position: Position | None, end: End, why: str | None) -> bool:
    """Whether records that were read no longer exist: then what a full reading does not find is gone."""
    return (position is not None and position.offset > end.high) or (why or "").startswith(TRUNCATED)


def advance(
    positions: Positions,
    intake: Intake,
    reached: Positions,
    answers: Mapping[PartitionKey, Answer],
    *,
    now_ms: int,
) -> dict[PartitionKey, Position]:
    """The positions after a batch with this intake that stopped at `reached`, by the answers before it."""
    after = dict(positions)
    for key, end in answers.items():
        if not isinstance(end, End):
            continue
        before = Position(end.log_start, at_end_ms=now_ms) if key in intake.reread else positions[key]
        now = reached.get(key, before)
        at_end_ms = now_ms if now.offset >= end.stable else before.at_end_ms
        after[key] = Position(now.offset, now.leader_epoch, at_end_ms)
    return after


def _no_longer_holds(
    key: PartitionKey, position: Position | None, end: End, limits: Limits, now_ms: int
) -> str | None:
    if position is None:
        return None
    if position.offset > end.high:
        return (
            f"its log ends at offset {end.high}, before offset {position.offset} up to which it was read: "
            "it was truncated, restored or re-created"
        )
    if position.offset < end.log_start:
        return (
            f"its log starts at offset {end.log_start}, past offset {position.offset} up to which it was read: "
            "records were deleted before they were read"
        )
    return _missed_deletions(key, now_ms - position.at_end_ms, limits)


def _missed_deletions(key: PartitionKey, away_ms: int, limits: Limits) -> str | None:
    kept_ms = limits.tombstones_kept_ms.get(key[0])
    if kept_ms is None and key not in limits.followed and away_ms > limits.tolerated_ms:
        return (
            f"it was not read to its end for {duration(away_ms)}, and how long its tombstones are kept "
            f"(delete.retention.ms) is unknown: {MAY_HAVE_MISSED_DELETIONS}"
        )
    if kept_ms is not None and away_ms > kept_ms:
        return (
            f"it was not read to its end for {duration(away_ms)}, and its tombstones are kept for "
            f"{duration(kept_ms)} (delete.retention.ms): {MAY_HAVE_MISSED_DELETIONS}"
        )
    return None


def _within_limits(wanted: list[Span], limits: Limits) -> tuple[Span, ...]:
    control = [span for span in wanted if span.topic in limits.control_topics]
    fewer = [span for span in wanted if span.topic not in limits.control_topics]
    left = _MOST_CONTROL_RECORDS
    # The smallest first, each at most its share of what is left: a backlog in one tenant's topic holds up no other.
    for n, span in enumerate(sorted(control, key=lambda span: span.end - span.start)):
        fewer.append(_first(span, max(left // (len(control) - n), 1)))
        left -= fewer[-1].end - fewer[-1].start
    return _shared_out(sorted(fewer, key=lambda span: span.key), limits.most_records)


def _shared_out(wanted: list[Span], most_records: int) -> tuple[Span, ...]:
    total = _records(wanted)
    if total <= most_records:
        return tuple(wanted)
    # Rounded up, so that every partition advances.
    return tuple(_first(span, -(-(span.end - span.start) * most_records // total)) for span in wanted)


def _records(spans: Iterable[Span]) -> int:
    return sum(span.end - span.start for span in spans)


def _first(span: Span, records: int) -> Span:
    return replace(span, end=min(span.end, span.start + records))


def shares(spans: tuple[Span, ...], *, tasks: int, records_a_task: int) -> list[list[Span]]:
    """The spans in at most `tasks` shares of about equal size (`placed`); fewer if there is little to read."""
    count = max(1, min(tasks, len(spans), -(-_records(spans) // records_a_task)))
    by_key = sorted(spans, key=lambda span: span.key)
    return placed(by_key, lambda span: span.end - span.start, tasks=count)


def to_fields(positions: Positions) -> dict[str, dict[str, list[int]]]:
    """The positions for JSON, by topic and partition number."""
    fields: dict[str, dict[str, list[int]]] = {}
    for (topic, number), one in sorted(positions.items()):
        fields.setdefault(topic, {})[str(number)] = [one.offset, one.leader_epoch, one.at_end_ms]
    return fields


def from_fields(fields: Mapping[str, Mapping[str, Any]]) -> dict[PartitionKey, Position]:
    """The positions from `to_fields`."""
    return {
        (topic, int(partition)): Position(*pair)
        for topic, partitions in fields.items()
        for partition, pair in partitions.items()
    }
