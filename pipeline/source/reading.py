"""Source: what one task does: read the records of some spans and decode them, and ask where logs end.

Records go from librdkafka straight into the decoder: what a task hands on is a row for each partition that was
committed, not one for each commit. A span whose leader stops answering ends early and says so; the records before
that count, and the next batch goes on where it ended (`kafka.positions`).
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.rows import log_offset_rows, rows_of
from pipeline.decode.step import Decoder, counted
from pipeline.kafka.positions import Span
from pipeline.kafka.sources.log_offsets.ask import ask, unanswered
from pipeline.kafka.sources.records.consumer import consume
from pipeline.kafka.sources.records.taking import Progress
from pipeline.source.deadline import each_within, within
from pipeline.source.decoded import newest_of
from pipeline.source.last_attempt import failures_before_last
from pipeline.source.partitions import Part
from pipeline.source.settings import SourceSettings

_CLIENT_S_PER_PARTITION = 0.001


def rows_of_part(settings: SourceSettings, part: Part) -> Iterator[pa.RecordBatch]:
    """Decoded rows of one part; the last attempt of a task asks nobody, so that crashes end no query."""
    crash = _crash(settings.attempts)
    if part.offset is not None:
        yield rows_of([{"row_kind": "intake", "reason": json.dumps(part.offset)}])
    if part.spans:
        yield from _records(settings, part.spans, crash)
    if part.share is not None:
        if crash is not None:
            answers = unanswered(settings.of_log_ends, part.share, crash)
        else:
            partitions = sum(len(numbers) for _, numbers in part.share.topics)
            # For leaders, for offsets, and for those that are asked again, each of which ends by its time-out.
            with within(3 * settings.timeout_s + _CLIENT_S_PER_PARTITION * partitions):
                answers = ask(settings.of_log_ends, part.share)
        is_listing = pc.is_null(answers["topic"])
        yield from (log_offset_rows(answers.filter(one)) for one in (is_listing, pc.invert(is_listing)))


def _crash(attempts: int) -> str | None:
    """Why nobody is asked: the attempts before this one, the last, have died."""
    died = failures_before_last(attempts)
    return None if died is None else f"the task that asks the brokers has died {died} times"


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
