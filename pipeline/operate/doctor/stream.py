"""Findings about the stream: how old everything is that the tables say."""

from collections.abc import Iterator

from pipeline.errors import StoreError
from pipeline.operate.doctor.evidence import StreamEvidence
from pipeline.operate.doctor.finding import Figures, Finding, span_text
from pipeline.operate.output import plain
from pipeline.tables.owner import heartbeat
from pipeline.tables.owner.heartbeat import Beat

TABLE = "partition_lag"
"""Its newest batch is that of all tables: it is written last."""

_CLOCKS_DIFFER_S = 10
_BATCHES_UNTIL_OLD = 3


def tables_age(stream: StreamEvidence) -> Iterator[Finding]:
    """How old everything is that the tables say."""
    figures = Figures(question="tables", source=TABLE, as_of=stream.as_of, object=plain(stream.tables.root))
    beat = _beat(stream)
    if stream.as_of is None:
        yield figures.finding(
            "problem",
            f"no batch has been written yet; {_driver(stream, beat)}",
            "wait if the stream has just started; else compare tables.root with the stream's",
        )
        return
    age_s = (stream.now - stream.as_of).total_seconds()
    if age_s < -_CLOCKS_DIFFER_S:
        yield figures.finding(
            "unknown",
            f"the newest batch began {span_text(-age_s)} from now by this machine's clock, so no age below is right",
            "compare the clocks of this machine and of the driver's",
        )
        return
    is_old = age_s > _BATCHES_UNTIL_OLD * stream.config.trigger.interval_s
    yield figures.finding(
        "problem" if is_old else "ok",
        f"{'OLD: ' if is_old else ''}the newest batch began {span_text(max(age_s, 0))} ago; {_driver(stream, beat)}",
        _todo(stream, beat) if is_old else None,
    )


def _beat(stream: StreamEvidence) -> Beat | None:
    try:
        return heartbeat.read(stream.tables.root)
    except StoreError:
        return None


def _is_alive(stream: StreamEvidence, beat: Beat) -> bool:
    return abs(stream.now.timestamp() - beat.at_ms / 1000) < heartbeat.SILENT_AFTER_S


def _driver(stream: StreamEvidence, beat: Beat | None) -> str:
    """What the driver's sign of life says."""
    if not heartbeat.is_kept(stream.tables.root):
        return "on an object store, drivers leave no sign of life"
    if beat is None:
        return "there is no sign of life of a driver"
    if beat.is_stopped:
        return f"driver {plain(beat.owner)} was stopped"
    if _is_alive(stream, beat):
        return f"driver {plain(beat.owner)} (term {beat.term}) is running"
    silent_s = stream.now.timestamp() - beat.at_ms / 1000
    return f"driver {plain(beat.owner)} has given no sign of life for {span_text(silent_s)}"


def _todo(stream: StreamEvidence, beat: Beat | None) -> str:
    if beat is not None and not beat.is_stopped and _is_alive(stream, beat):
        return (
            "see the driver's log: batches take long, or Kafka is away; what the tables say below is as old"
        )
    return (
        "start the stream with `lagwise run`, or find out why it ended; what the tables say below is as old"
    )
