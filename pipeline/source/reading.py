"""Source: the work of one task: read the records of some spans and decode them, ask for groups, ask for log ends.

Records go from librdkafka straight into the decoder: a task returns one row for each partition with a commit, not one
for each commit. If a leader stops answering, the span ends early and reports it; the records read before count, and the
next batch resumes there (`kafka.positions`).

A task asks for log ends after the coordinators have answered for its groups, so that no commit is newer than the log
end it is compared with. Another task may ask for the same partition; the newest answer counts.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.asked_groups import asked_rows, listing_rows
from pipeline.decode.rows import log_offset_rows, rows_of
from pipeline.decode.step import Decoder, counted
from pipeline.kafka.positions import PartitionKey, Span
from pipeline.kafka.sources.groups import ask as groups
from pipeline.kafka.sources.groups.settings import GroupShare
from pipeline.kafka.sources.log_offsets.ask import ask, unanswered
from pipeline.kafka.sources.log_offsets.settings import Share, with_partitions
from pipeline.kafka.sources.records.consumer import consume
from pipeline.kafka.sources.records.taking import Progress
from pipeline.name_filter import NameFilter
from pipeline.source.deadline import each_within, within
from pipeline.source.decoded import newest_of
from pipeline.source.last_attempt import failures, failures_before_last
from pipeline.source.partitions import Part
from pipeline.source.settings import SourceSettings

_CLIENT_S_PER_PARTITION = 0.001
_ATTEMPTS_WITHOUT_SPARE = 3
"""A first one, one after a crash, and the last, which asks no broker."""


def rows_of_part(settings: SourceSettings, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield the decoded rows of one part; the last attempt of a task asks no broker, so that crashes end no query.

    With four attempts or more, the last but one skips the questions about groups, so that a crash over a group costs no
    log ends. With three, the second attempt asks as after any crash (`ask_after_crash`).
    """
    crash = _crash(settings.attempts)
    if part.offset is not None:
        yield rows_of([{"row_kind": "intake", "reason": json.dumps(part.offset)}])
    if part.spans:
        yield from _records(settings, part.spans, crash)
    if part.listing is not None:
        yield from listing_rows(part.listing)
    committed = set[PartitionKey]()
    if part.groups is not None:
        attempts = settings.attempts - (settings.attempts > _ATTEMPTS_WITHOUT_SPARE)
        for batch in _groups(settings, part.groups, _crash(attempts)):
            committed.update(_committed(batch))
            yield batch
    yield from _log_ends(settings, part.share, committed, crash)


def _groups(settings: SourceSettings, share: GroupShare, crash: str | None) -> Iterator[pa.RecordBatch]:
    counts: Counter[str] = Counter()
    if crash is not None:
        answers = [*groups.unanswered(share, crash)]
    elif failures():
        # The processes that describe the groups, the last of which may take twice as long, and then as below.
        with within(6 * settings.timeout_s):
            answers = [*groups.ask_after_crash(settings.of_groups, share)]
    else:
        # To describe a group and to get its offsets; each question ends by the same time.
        with within(2 * settings.timeout_s):
            answers = [*groups.ask(settings.of_groups, share)]
    wanted = NameFilter(settings.filters.topics_include, settings.filters.topics_exclude)
    yield from asked_rows(answers, wanted.admits, counts)
    yield from counted(counts)


def _committed(batch: pa.RecordBatch) -> Iterator[PartitionKey]:
    is_commit = pc.equal(batch["row_kind"], "commit")
    topics, numbers = (batch[name].filter(is_commit).to_pylist() for name in ("topic", "partition"))
    return zip(topics, numbers, strict=True)


def _log_ends(
    settings: SourceSettings, share: Share | None, committed: set[PartitionKey], crash: str | None
) -> Iterator[pa.RecordBatch]:
    """Rows of the log ends of a share, and of its commits as far as the brokers answer."""
    if share is None and not committed:
        return
    own = share or Share()
    asked = with_partitions(own, committed)
    if crash is not None:
        answers = unanswered(settings.of_log_ends, own, crash)
    else:
        partitions = sum(len(numbers) for _, numbers in asked.topics)
        # For leaders, for offsets, and for those that are asked again, each of which ends by its time-out.
        with within(3 * settings.timeout_s + _CLIENT_S_PER_PARTITION * partitions):
            answers = ask(settings.of_log_ends, asked)
    is_listing = pc.is_null(answers["topic"])
    yield log_offset_rows(answers.filter(is_listing))
    # Whether a topic is there is for the listing to say: commits outlive it.
    is_told = pc.invert(is_listing) if asked == own else _is_own_or_answered(answers, own)
    yield log_offset_rows(answers.filter(is_told))


def _is_own_or_answered(answers: pa.RecordBatch, own: Share) -> pa.BooleanArray:
    places = {(topic, number) for topic, numbers in own.topics for number in numbers}
    names, numbers = answers["topic"].to_pylist(), answers["partition"].to_pylist()
    is_own = pa.array([key in places for key in zip(names, numbers, strict=True)], pa.bool_())
    return pc.and_(pc.is_valid(answers["topic"]), pc.or_(is_own, pc.is_null(answers["error"])))


def _crash(attempts: int) -> str | None:
    """Cause in the rows of a last attempt, which asks no broker because all earlier attempts died."""
    died = failures_before_last(attempts)
    return None if died is None else f"the task that asks the brokers died {died} times"


def _records(
    settings: SourceSettings, spans: tuple[Span, ...], crash: str | None
) -> Iterator[pa.RecordBatch]:
    if crash is not None:
        yield _reached([Progress(one, one.start, one.leader_epoch, error=crash).row() for one in spans])
    elif settings.collapses:
        yield from newest_of(_batches(settings, list(spans))).rows()
    else:
        yield from _batches(settings, list(spans))


def _batches(settings: SourceSettings, spans: list[Span]) -> Iterator[pa.RecordBatch]:
    decoder = Decoder(settings.filters, collapses=settings.collapses)
    counts: Counter[str] = Counter()
    for piece in each_within(settings.timeout_s, consume(spans, settings.of_records)):
        if isinstance(piece, pa.RecordBatch):
            yield from decoder.decode(piece, counts)
        else:
            yield _reached(piece)
    yield from counted(counts)


def _reached(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return rows_of([row | {"row_kind": "read"} for row in rows])
