"""State of the stream: the verdict of `lagwise health`, the newest batch, and the driver."""

from pipeline import clock
from pipeline.operate.output import Row
from pipeline.operate.serve.views.source import Now
from pipeline.tables.owner.health import Health
from pipeline.tables.owner.heartbeat import Beat


def health_row(now: Now) -> Row:
    """Return the verdict and its basis; null means unknown or none."""
    health, stamp = now.health, now.found.stamp
    beat = now.seen.beat if now.seen else None
    report = beat.report if beat else None
    return {
        **_verdict(health),
        "observed_at": now.observed_at,
        "age_s": now.age_s,
        "batch_id": stamp.batch_id if stamp else None,
        "batch_s": report.batch_s if report else None,
        "provisional_partitions": len(stamp.behind) if stamp else None,
        **_owner(beat),
        "stage": _stage(health, beat),
        "versions": {name: table.version for name, table in sorted(now.found.tables.items())},
    }


def _stage(health: Health | None, beat: Beat | None) -> str | None:
    """What the driver does; None if it is unknown because the driver sends no heartbeat."""
    if beat is not None and beat.is_stopped:
        return "stopped"
    if beat is None or beat.report is None or health is None or not health.is_live:
        return None
    return beat.report.stage


def _verdict(health: Health | None) -> Row:
    if health is None:
        unknown: Row = dict.fromkeys(("state", "live", "ready"))
        return unknown | {"reasons": ["the driver's heartbeat cannot be read"]}
    return {
        "state": health.state,
        "live": health.is_live,
        "ready": health.is_ready,
        "reasons": list(health.reasons),
    }


def _owner(beat: Beat | None) -> Row:
    if beat is None:
        return dict.fromkeys(("driver", "term", "beat_at"))
    beat_at = clock.at(beat.at_ms)
    return {"driver": beat.owner, "term": beat.term, "beat_at": beat_at}
