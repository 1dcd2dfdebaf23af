"""How the stream is: the verdict of `lagwise health`, the newest batch, and the driver."""

from datetime import datetime, timezone

from pipeline.operate.output import Row
from pipeline.operate.serve.views.source import Now


def health_row(now: Now) -> Row:
    """The verdict and what it rests on; null is unknown, or there is none."""
    health, stamp = now.health, now.found.stamp
    beat = now.seen.beat if now.seen else None
    report = beat.report if beat else None
    return {
        "state": health.state if health else None,
        "live": health.is_live if health else None,
        "ready": health.is_ready if health else None,
        "reasons": list(health.reasons) if health else ["the driver's sign of life cannot be read"],
        "observed_at": now.observed_at,
        "age_s": now.age_s,
        "batch_id": stamp.batch_id if stamp else None,
        "batch_s": report.batch_s if report else None,
        "provisional_partitions": len(stamp.behind) if stamp else None,
        "driver": beat.owner if beat else None,
        "term": beat.term if beat else None,
        "stage": report.stage if report else None,
        "beat_at": datetime.fromtimestamp(beat.at_ms / 1000, tz=timezone.utc) if beat else None,
        "versions": {name: table.version for name, table in sorted(now.found.tables.items())},
    }
