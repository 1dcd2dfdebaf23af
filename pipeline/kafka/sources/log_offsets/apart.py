"""Source: log offsets asked for by the process beside this one; when it dies, nothing is known of the share."""

import pyarrow as pa

from pipeline import clock
from pipeline.kafka import beside
from pipeline.kafka.sources.log_offsets.ask import LOG_OFFSETS, ask, listing
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share

_CLIENT_S_PER_PARTITION = 0.001


def ask_apart(settings: LogOffsetsSettings, share: Share) -> pa.RecordBatch:
    """As `ask.ask`; when the process dies, every row has that as its error."""
    try:
        return beside.process.ask(_longest_s(settings, share), ask, settings, share)
    except beside.ProcessDiedError as error:
        return _unanswered(settings, share, str(error))


def _longest_s(settings: LogOffsetsSettings, share: Share) -> float:
    partitions = sum(len(numbers) for _, numbers in share.topics)
    # For leaders, for offsets, and for those that are asked again, each of which ends by its time-out.
    return 3 * settings.request_timeout_s + _CLIENT_S_PER_PARTITION * partitions


def _unanswered(settings: LogOffsetsSettings, share: Share, error: str) -> pa.RecordBatch:
    same = {"isolation": settings.isolation, "observed_at_ms": clock.now_ms(), "error": error}
    rows = [
        same | {"topic": topic, "partition": number} for topic, numbers in share.topics for number in numbers
    ]
    return pa.RecordBatch.from_pylist([*listing(settings, share), *rows], LOG_OFFSETS)
