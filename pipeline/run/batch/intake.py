"""Intake: what a batch reads of the offsets, acks and commands topics, and what is known when it has.

The source has chosen it (`source.planner`). What cannot be read is named and marked, and does not hold up
the rest: groups whose partition of the offsets topic has no answer are behind (provisional), and no plan is made for
groups whose acks cannot be read, or for any group while commands cannot, since a refusal or a pause may stand there.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_columns import moment
from pipeline.clock import duration
from pipeline.errors import OffsetsRefusedError
from pipeline.kafka.positions import (
    NEVER_READ,
    REFUSED,
    TRUNCATED,
    Answer,
    End,
    Intake,
    PartitionKey,
    Position,
    advance,
)
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch import clock
from pipeline.run.batch.opening import Chosen, Read
from pipeline.run.driver import Driver, Services
from pipeline.run.replay import FIRST_WRITTEN, Past
from pipeline.run.rows import of_cluster
from pipeline.source.summary import Summary
from pipeline.tables.stamp import NO_PLANS_BY_ANSWERS, Stamp

log = logging.getLogger(__name__)

_Value = TypeVar("_Value")
_REREADS_LOGGED_EVERY_MS = 3_600_000
_NO_RECORDS = "an earlier version has not read the members of its KIP-848 groups"
_IS_WITHOUT_RECORDS = (
    (pc.field("group_type") == "consumer")
    & pc.field("records").is_null()
    & pc.field("unconfirmed_reason").is_null()
)
_BEHEADED_HINT = (
    "rows whose records are no longer in the topic are kept and marked until the brokers, which lagwise asks, "
    "confirm or deny them; no action is needed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A batch whose records are read: what all that follows is made from, and how it is written."""

    driver: Driver
    read: Read
    stamp: Stamp
    """Stamp of all its writes: its clock, how far everything is read by now, and which groups that leaves behind."""
    intake: Intake
    """Spans that it had to read."""
    answers: Mapping[PartitionKey, Answer]
    """Answers of the leaders before it read; empty if it runs again."""
    past: Past | None = None
    """Contents of the tables when it began; None except for the first batch after a start."""

    @property
    def services(self) -> Services:
        """The driver's."""
        return self.driver.services

    @property
    def held(self) -> Mapping[str, Stamp]:
        """Tables that hold it already, from a run before this one; none of them is written again."""
        return {} if self.past is None else self.past.holding(self.stamp.tick)

    @property
    def is_replay(self) -> bool:
        """It ran before, up to some step: what it reads, its clock and who is behind are those of that time."""
        return FIRST_WRITTEN in self.held

    @property
    def has_read(self) -> bool:
        """Return whether the position advanced in any log."""
        reached = self.read.summary.reached
        return any(
            span.key in reached and reached[span.key].position.offset > span.start
            for span in self.intake.spans
        )

    def reread(self, topic: str) -> tuple[int, ...]:
        """Partitions of the topic that it began to read from their log start."""
        return tuple(sorted(number for name, number in self.stamp.reread if name == topic))

    def beheaded(self, topic: str) -> tuple[int, ...]:
        """Return those that have lost the beginning of their log."""
        return tuple(sorted(number for name, number in self.stamp.beheaded if name == topic))

    def write(self, name: str, rows: pa.Table) -> None:
        """Write the rows, which have cluster, time and number of the batch, unless the table holds it."""
        if name not in self.held:
            self.driver.written_ms.pop(name, None)
            self.services.store.write(name, rows, self.stamp)

    def write_measured(self, name: str, rows: pa.Table) -> None:
        """Write the rows with cluster, time and number of the batch, unless the table holds it."""
        at, number = moment(self.stamp.at_ms), pa.scalar(self.stamp.batch_id, pa.int64())
        for column, value in (("updated_at", at), ("batch_id", number)):
            rows = rows.append_column(column, pa.repeat(value, rows.num_rows))
        self.write(name, of_cluster(self.services.cluster, rows))


def settle(driver: Driver, read: Read, chosen: Chosen) -> Settled:
    """Say how far everything is by now, and which groups that leaves behind.

    Raises:
        OffsetsRefusedError: Brokers do not report rights, and a task was refused the offsets topic.
    """
    if chosen.first_run is not None:
        return _settled_again(driver, read, chosen, chosen.first_run)
    if driver.services.is_tried:
        _require_readable(read.summary)
    offset = chosen.offset
    driver.services.configs.ask_again()
    _log_reread(driver, offset.intake, chosen.at_ms)
    stamp = _stamp(driver, read.summary, chosen)
    apart = clock.why_apart(read.decoded.kind("commit"), stamp, driver.progress.stamp)
    return Settled(
        driver=driver,
        read=read,
        stamp=stamp if apart is None else replace(stamp, remarks=(*stamp.remarks, apart)),
        intake=offset.intake,
        answers=offset.answers,
        past=chosen.past,
    )


def _require_readable(summary: Summary) -> None:
    for (topic, number), one in sorted(summary.reached.items()):
        if topic == OFFSETS_TOPIC and one.error is not None and one.error.startswith(REFUSED):
            raise OffsetsRefusedError(f"partition {number} of {topic} cannot be read: {one.error}")


def _log_reread(driver: Driver, read: Intake, at_ms: int) -> None:
    """One warning for each topic, however many of its partitions are read again; of every batch, one an hour."""
    progress = driver.progress
    if read.impatient and at_ms - progress.rereads_logged_ms >= _REREADS_LOGGED_EVERY_MS:
        progress.rereads_logged_ms = at_ms
        for remark in _impatient(driver.services, read):
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
            "a topic is read again from its start; its groups are provisional until its end is reached",
            extra={
                "topic": topic,
                "partitions": list(reasons),
                "reason": reasons[first] + (f" (partition {first})" if len(reasons) > 1 else ""),
                **({"beginning_deleted": beheaded, "hint": _BEHEADED_HINT} if beheaded else {}),
            },
        )


def _stamp(driver: Driver, summary: Summary, chosen: Chosen) -> Stamp:
    services, progress, now_ms = driver.services, driver.progress, chosen.at_ms
    intake = chosen.offset.intake
    positions = advance(
        (progress.stamp and progress.stamp.positions) or {},
        intake,
        {key: one.position for key, one in summary.reached.items()},
        chosen.offset.answers,
        now_ms=now_ms,
    )
    # Of partitions whose leader fell silent while they were read, that.
    silent = {key: one.error for key, one in summary.reached.items() if one.error is not None}
    answers = {**chosen.offset.answers, **silent}
    offsets = {number: one.offset for number, one in _of_offsets_topic(positions).items()}
    no_plans = chosen.clock_trouble or (NO_PLANS_BY_ANSWERS if services.config.source.asks_groups else None)
    held, held_acks = _held(services, {} if no_plans else _unread(answers, positions))
    progress.readiness.observe(
        _of_offsets_topic(answers), offsets, reread=[*_of_offsets_topic(intake.reread)], now_ms=now_ms
    )
    behind = progress.readiness.behind(offsets, now_ms)
    return Stamp(
        batch_id=chosen.batch_id,
        at_ms=now_ms,
        behind=tuple(behind),
        reason=progress.readiness.reason(behind, now_ms),
        held=no_plans or held,
        held_acks=held_acks,
        is_clock_behind=chosen.clock_trouble is not None,
        cluster_id=services.cluster_id,
        filters=services.filters.identity,
        positions=positions,
        spans=tuple(replace(span, end=positions[span.key].offset) for span in intake.spans),
        reread=tuple(sorted(intake.reread)),
        brokers=summary.brokers,
        beheaded=tuple(sorted(intake.beheaded)),
        remarks=tuple(_remarks(services, intake, held_acks)),
        tick=chosen.offset.tick,
        distrusted=_distrusted(progress.stamp, intake, summary, _never_read(services, chosen)),
        followed=tuple(sorted(key for key, answer in answers.items() if isinstance(answer, End))),
        tombstones_kept_ms={topic: services.configs.tombstones_kept_ms(topic) for topic in services.topics},
        parallelism=driver.parallelism,
    )


def _of_offsets_topic(by_key: Mapping[PartitionKey, _Value]) -> dict[int, _Value]:
    """The values of partitions of the offsets topic, by partition number."""
    return {number: value for (topic, number), value in by_key.items() if topic == OFFSETS_TOPIC}


def _remarks(services: Services, read: Intake, held_acks: Mapping[str, str]) -> Iterator[str]:
    if services.hidden is not None:
        yield (
            f'coordinators are asked because {services.hidden}; source.offsets = "auto" returns to the topic as soon '
            "as brokers report that it can be read"
        )
    yield from _impatient(services, read)
    for topic, why in held_acks.items():
        yield f"no plan is made for groups that acknowledge on {topic}: {why}"


def _impatient(services: Services, read: Intake) -> Iterator[str]:
    for topic in sorted({topic for topic, _ in read.impatient}):
        kept_ms = services.configs.tombstones_kept_ms(topic) or 0
        yield (
            f"{topic} keeps tombstones for {duration(kept_ms)} only (delete.retention.ms), less than the time "
            f"between two batches, so each batch reads it again from its start: raise delete.retention.ms of {topic} "
            "above ten times trigger.interval_s (Kafka's default is a day)"
        )


def _never_read(services: Services, chosen: Chosen) -> dict[PartitionKey, str]:
    """Logs with records of KIP-848 groups that an earlier version skipped; found after a start."""
    if chosen.past is None:
        return {}
    rows = services.store.arrow("consumer_groups", ["offsets_partition"], _IS_WITHOUT_RECORDS)
    numbers = pc.drop_null(rows["offsets_partition"]).unique().to_pylist()
    return {(OFFSETS_TOPIC, number): _NO_RECORDS for number in numbers}


def _distrusted(
    before: Stamp | None, intake: Intake, summary: Summary, never_read: Mapping[PartitionKey, str]
) -> tuple[tuple[str, int, str], ...]:
    """Logs that the next batch reads from their start: truncated under this one, or still waiting for that."""
    waiting = {} if before is None else {(topic, number): why for topic, number, why in before.distrusted}
    truncated = {
        key: one.error
        for key, one in summary.reached.items()
        if one.error is not None and one.error.startswith(TRUNCATED)
    }
    waiting = {**never_read, **waiting}
    left = {key: why for key, why in waiting.items() if key not in intake.reread} | truncated
    return tuple((*key, why) for key, why in sorted(left.items()))


def _unread(
    answers: Mapping[PartitionKey, Answer], positions: Mapping[PartitionKey, Position]
) -> dict[str, str]:
    """Why an acknowledgement or an order may not be read yet, by topic."""
    found: dict[str, str] = {}
    for (topic, number), answer in sorted(answers.items(), key=lambda pair: pair[0]):
        if topic == OFFSETS_TOPIC:
            continue
        if isinstance(answer, str):
            found.setdefault(topic, f"partition {number} of {topic} cannot be read: {answer}")
        elif positions[topic, number].offset < answer.stable:
            found.setdefault(topic, f"partition {number} of {topic} is not read to its end yet")
    return found


def _held(services: Services, unread: Mapping[str, str]) -> tuple[str | None, Mapping[str, str]]:
    """Why no plan may be made; if it may for some groups, why not for others, by the topic of their acks."""
    control = services.filters.control_topics
    if control.commands in unread or control.every_acks <= unread.keys():
        return next(iter(unread.values())), {}
    return None, unread


def _settled_again(driver: Driver, read: Read, chosen: Chosen, first_run: Stamp) -> Settled:
    """The intake with the stamp of the first run. A span that cannot be read now is read again later."""
    spans = tuple(span for span in first_run.spans if span.start < span.end)
    reached = read.summary.reached
    missing = {
        span.key: Position(span.start, span.leader_epoch, first_run.at_ms)
        for span in spans
        if reached[span.key].position.offset < span.end
    }
    return Settled(
        driver=driver,
        read=read,
        stamp=_without(missing, first_run) if missing else first_run,
        intake=Intake(
            spans=spans,
            reread=dict.fromkeys(first_run.reread, "the batch runs again"),
            beheaded=frozenset(first_run.beheaded),
        ),
        answers={},
        past=chosen.past,
    )


def _without(missing: Mapping[PartitionKey, Position], stamp: Stamp) -> Stamp:
    """The stamp of a batch that has not read what lies behind these positions, as its first run had."""
    numbers = sorted(number for topic, number in missing if topic == OFFSETS_TOPIC)
    what = ", ".join(f"{topic}-{number}" for topic, number in sorted(missing))
    why = f"records that a batch had read before the job stopped cannot be read again yet: {what}"
    log.warning(
        "a batch runs again without some of its records; a later batch reads them", extra={"partitions": what}
    )
    return replace(
        stamp,
        behind=tuple(sorted({*stamp.behind, *numbers})),
        reason=f"{stamp.reason}; {why}" if stamp.reason else why,
        held=stamp.held or (why if len(numbers) < len(missing) else None),
        positions={**(stamp.positions or {}), **missing},
    )
