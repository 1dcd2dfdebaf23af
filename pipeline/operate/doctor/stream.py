"""Findings about the stream: whether its driver is alive, and the age of the tables."""

from collections.abc import Iterator

from pipeline.errors import StoreError
from pipeline.operate.doctor.evidence import StreamEvidence
from pipeline.operate.doctor.finding import Figures, Finding, Level
from pipeline.operate.health import CLOCKS_DIFFER_S, sight
from pipeline.operate.output import plain, span_text
from pipeline.tables.owner.health import Health, Sight, judge, late_after_s
from pipeline.tables.stamp import NO_PLANS_BY_ANSWERS

TABLE = "partition_lag"
"""Its newest batch is that of all tables, because it is written last."""

_SO_OLD = "figures below that come from the tables are as old"
_LOOK = "see the driver's log: batches take long, or Kafka is unavailable"
_KAFKA = "look at the brokers and at the network between them and the driver; it continues by itself when they answer"
_STARTING = "wait for its first batch, a minute or two; if none comes, see its log"


def tables_age(stream: StreamEvidence) -> Iterator[Finding]:
    """Return the verdict of `lagwise health`, with the age of the tables."""
    figures = Figures(question="tables", source=TABLE, as_of=stream.as_of, object=plain(stream.tables.root))
    age_s = None if stream.as_of is None else (stream.now - stream.as_of).total_seconds()
    if age_s is not None and age_s < -CLOCKS_DIFFER_S:
        yield figures.finding(
            "unknown",
            f"the newest batch began {span_text(-age_s)} from now by this machine's clock, so no age below is right",
            "compare the clocks of this machine and of the driver's host",
        )
        return
    age = "no batch has been written yet"
    if age_s is not None:
        age = f"the newest batch began {span_text(max(age_s, 0))} ago"
    try:
        seen = sight(stream.tables, stream.stamp, stream.config)
    except StoreError as error:
        yield figures.finding("unknown", f"{age}; {error}", "see whether this user may read that file")
        return
    health = judge(seen, now_ms=round(stream.now.timestamp() * 1000))
    is_old = age_s is not None and age_s > late_after_s(seen.trigger_s)
    cause, todo = _cause(health, seen, age)
    if is_old:
        age, todo = f"OLD: {age}", f"{todo or _todo(seen)}; {_SO_OLD}"
    yield figures.finding(_level(health), f"{age}; {cause}", todo)


def held(stream: StreamEvidence, figures: Figures) -> Iterator[Finding]:
    """Yield causes that keep all groups from plans."""
    why = None if stream.stamp is None else stream.stamp.held
    if why == NO_PLANS_BY_ANSWERS:
        yield figures.about("source.offsets").finding("note", f"no plan is made for any group: {why}")
    elif why is not None:
        yield figures.about("plans").finding(
            "problem",
            f"no plan is made for any group: {why}",
            "look at the cause named there; plans resume by themselves",
        )


def _level(health: Health) -> Level:
    if health.state == "unknown":
        return "unknown"
    if not health.is_ready or health.is_blocked:
        return "problem"
    return "note" if health.reasons else "ok"


def _cause(health: Health, seen: Sight, age: str) -> tuple[str, str | None]:
    """The cause that `lagwise health` gives, and what to do."""
    reasons = [reason for reason in health.reasons if reason != age]
    if not reasons:
        return _driver(seen), None if health.is_ready else "wait if it has just started; else see its log"
    cause, _, todo = plain(reasons[0]).partition("; ")
    if health.is_live:
        cause = f"{_driver(seen)}: {cause}"
    return cause, todo or (None if health.is_ready else _todo(seen))


def _todo(seen: Sight) -> str:
    """Advice for a driver that is alive but not up to date."""
    report = seen.beat.report if seen.beat else None
    if report is not None and report.kafka_error is not None:
        return _KAFKA
    return _STARTING if report is not None and report.stage == "starting" else _LOOK


def _driver(seen: Sight) -> str:
    if seen.beat is None:
        return "on an object store, drivers write no heartbeat"
    return f"driver {plain(seen.beat.owner)} (term {seen.beat.term}) is running"
