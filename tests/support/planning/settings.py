"""Settings of decisions whose clock stands still, and in which no guard holds a plan back."""

from pipeline.config.model import PlanConfig
from pipeline.planning.step import PlanSettings
from tests.support.job.frames import NOW_MS
from tests.support.job.job import NO_GUARDS

SETTINGS = PlanSettings(
    cluster="local",
    config=PlanConfig(strategy="lag-aware", dry_run=False, guards=NO_GUARDS),
    half_life_ms=120_000,
    max_record_bytes=1_000_000,
    batch_interval_s=30,
    at_ms=NOW_MS,
    now_ms=NOW_MS,
    batch_id=7,
    least_epoch=1,
    behind=(),
    provisional_reason=None,
)
