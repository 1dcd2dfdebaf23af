"""Intake: what a batch reads of the offsets, acks and commands topics, and what is known when it has.

The source has chosen it (`source.planner`). What cannot be read is named and marked, and does not hold up
the rest: groups whose partition of the offsets topic has no answer are behind (provisional), and while acks or
commands cannot be read no plan is made at all, since a pause or a refusal may stand there.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pipeline.clock import duration
from pipeline.kafka.positions import (
    NEVER_READ,
    TRUNCATED,
    Answer,
    End,
    Intake,
    PartitionKey,
    Position,
    Span,
    advance,
)
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.driver import Batch
from pipeline.run.services import Services
from pipeline.source.offset import SourceOffset
from pipeline.tables.stamp import Stamp

log = logging.getLogger(__name__)

_REREADS_LOGGED_EVERY_MS = 3_600_000
_BEHEADED_HINT = (
    "what is not found where the beginning was deleted is kept and marked until the brokers, who are asked, confirm it "
    "or deny it; nothing has to be done"
)


def choose(batch: Batch, offset: SourceOffset) -> None:
    """Take in what the source has chosen for the batch to read; a replay has read what it read before."""
    if batch.is_replay:
        batch.intake = Intake(
            spans=tuple(span for span in batch.clock.spans if span.start < span.end),
            reread=dict.fromkeys(batch.clock.reread, "the batch runs again"),
            beheaded=frozenset(batch.clock.beheaded),
        )
        return
    batch.answers, batch.intake = offset.answers, offset.intake
    batch.services.configs.ask_again()
    _log_reread(batch)


def _log_reread(batch: Batch) -> None:
    """One warning for each topic, however many of its partitions are read again; of every batch, one an hour."""
    read, progress = batch.intake, batch.driver.progress
    if read.impatient and batch.at_ms - progress.rereads_logged_ms >= _REREADS_LOGGED_EVERY_MS:
        progress.rereads_logged_ms = batch.at_ms
        for remark in _remarks(batch.services, read):
            log.warning(remark)
    by_topic: dict[str, dict[int, str]] = defaultdict(dict)
    for (topic, number), why in sorted(read.reread.items()):
        if why != NEVER_READ and (topic, number) not in read.impatient:
            by_topic[topic][number] = why
    for topic, reasons in by_topic.items():
        beheaded = [
            number for number in reasons if topic == OFFSETS_TOPIC and (topic, number) in read.beheaded
        ]
        first = min(reasons)
        log.warning(
            "a topic is read again from its start; its groups are provisional until that is done",
            extra={
                "topic": topic,
                "partitions": list(reasons),
                "reason": reasons[first] + (f" (partition {first})" if len(reasons) > 1 else ""),
                **({"beginning_deleted": beheaded, "hint": _BEHEADED_HINT} if beheaded else {}),
            },
        )


def settle(batch: Batch) -> None:
    """Say how far everything is by now, and whom that leaves behind: the stamp that all writes of the batch carry."""
    batch.stamp = _replayed(batch) if batch.is_replay else _settled(batch)


def _settled(batch: Batch) -> Stamp:
    services, progress, now_ms = batch.services, batch.driver.progress, batch.at_ms
    positions = advance(
        (progress.stamp.positions if progress.stamp is not None else None) or {},
        batch.intake,
        {key: one.position for key, one in batch.summary.reached.items()},
        batch.answers,
        now_ms=now_ms,
    )
    answers = _with_failures(batch)
    offsets = {number: one.offset for (topic, number), one in positions.items() if topic == OFFSETS_TOPIC}
    progress.readiness.observe(
        {number: answer for (topic, number), answer in answers.items() if topic == OFFSETS_TOPIC},
        offsets,
        reread=[number for topic, number in batch.intake.reread if topic == OFFSETS_TOPIC],
        now_ms=now_ms,
    )
    behind = progress.readiness.behind(offsets, now_ms)
    return Stamp(
        batch_id=batch.batch_id,
        at_ms=now_ms,
        behind=tuple(behind),
        reason=progress.readiness.reason(behind, now_ms),
        held=batch.clock_trouble or _held(answers, positions),
        cluster_id=services.cluster_id,
        filters=services.filters.identity,
        positions=positions,
        spans=_as_read(batch.intake.spans, positions),
        reread=tuple(sorted(batch.intake.reread)),
        brokers=batch.summary.brokers,
        beheaded=tuple(sorted(batch.intake.beheaded)),
        remarks=tuple(_remarks(services, batch.intake)),
        tick=batch.tick,
        distrusted=_distrusted(batch),
        followed=tuple(sorted(key for key, answer in answers.items() if isinstance(answer, End))),
        tombstones_kept_ms={topic: services.configs.tombstones_kept_ms(topic) for topic in services.topics},
        parallelism=batch.driver.parallelism,
    )


def _remarks(services: Services, read: Intake) -> Iterator[str]:
    for topic in sorted({topic for topic, _ in read.impatient}):
        kept_ms = services.configs.tombstones_kept_ms(topic) or 0
        yield (
            f"{topic} keeps tombstones for {duration(kept_ms)} only (delete.retention.ms), less than from one batch to "
            f"the next, so each batch reads it again from its start: raise delete.retention.ms of {topic} above "
            "ten times trigger.interval_s (Kafka's default is a day)"
        )


def _with_failures(batch: Batch) -> dict[PartitionKey, Answer]:
    """The answers, and of partitions whose leader fell silent while they were read, that."""
    failed = {key: one.error for key, one in batch.summary.reached.items() if one.error is not None}
    return {**batch.answers, **failed}


def _distrusted(batch: Batch) -> tuple[tuple[str, int, str], ...]:
    """Logs that the next batch reads from their start: truncated under this one, or still waiting for that."""
    before = batch.driver.progress.stamp
    waiting = {} if before is None else {(topic, number): why for topic, number, why in before.distrusted}
    truncated = {
        key: one.error
        for key, one in batch.summary.reached.items()
        if one.error is not None and one.error.startswith(TRUNCATED)
    }
    left = {key: why for key, why in waiting.items() if key not in batch.intake.reread} | truncated
    return tuple((*key, why) for key, why in sorted(left.items()))


def _held(answers: Mapping[PartitionKey, Answer], positions: Mapping[PartitionKey, Position]) -> str | None:
    """Why no plan may be made: an acknowledgement or an order may not be read yet."""
    for key, answer in sorted(answers.items(), key=lambda pair: pair[0]):
        topic, number = key
        if topic == OFFSETS_TOPIC:
            continue
        if isinstance(answer, str):
            return f"partition {number} of {topic} cannot be read: {answer}"
        if isinstance(answer, End) and positions[key].offset < answer.stable:
            return f"partition {number} of {topic} is not read to its end yet"
    return None


def _as_read(spans: tuple[Span, ...], positions: Mapping[PartitionKey, Position]) -> tuple[Span, ...]:
    return tuple(replace(span, end=positions[span.key].offset) for span in spans)


def _replayed(batch: Batch) -> Stamp:
    """The stamp of the first run; a span that cannot be read now is read again later."""
    stamp, missing = batch.clock, _missing(batch)
    if not missing:
        return stamp
    numbers = sorted(number for topic, number in missing if topic == OFFSETS_TOPIC)
    what = ", ".join(f"{topic}-{number}" for topic, number in sorted(missing))
    why = f"what a batch had read before the job stopped cannot be read again yet: {what}"
    log.warning("a batch runs again without some of its records; they follow", extra={"partitions": what})
    return replace(
        stamp,
        behind=tuple(sorted({*stamp.behind, *numbers})),
        reason=f"{stamp.reason}; {why}" if stamp.reason else why,
        held=stamp.held or (why if len(numbers) < len(missing) else None),
        positions={**(stamp.positions or {}), **missing},
    )


def _missing(batch: Batch) -> dict[PartitionKey, Position]:
    """Where spans start that the first run has read and this one could not read to their end."""
    reached = batch.summary.reached
    return {
        span.key: Position(span.start, span.leader_epoch, batch.driver.replay.at_ms)
        for span in batch.intake.spans
        if reached[span.key].position.offset < span.end
    }
