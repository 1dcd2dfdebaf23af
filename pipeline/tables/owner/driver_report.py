"""The driver's report in each heartbeat: what the tables cannot show, because only batches write them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

Stage: TypeAlias = Literal["starting", "standing by", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReport:
    """The state of a driver; times in ms since the epoch, by its clock."""

    stage: Stage
    interval_s: float
    """Interval of its trigger."""
    stuck_after_s: float
    """Time limit for the end of the next step."""
    progress_at_ms: int
    """When a step of a batch last ended, the storage of the tables last answered the driver, or the driver last waited
    for brokers."""
    step: str | None = None
    """The step that ended last; None before the first."""
    doing: str | None = None
    """Present activity, if known; maintenance names the table."""
    batch_s: float | None = None
    """Duration of the newest batch."""
    kafka_error: str | None = None
    """Why the brokers cannot be asked now; None if they can, or have not been asked yet."""
    storage_error: str | None = None
    """Why the tables cannot be written now; None if they can."""
    spark_error: str | None = None
    """Why Spark is idle now; None if it works."""
    is_settled: bool = False
    """True once the offsets topic was read to its end after the start, or `start.deadline_s` has passed."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "DriverReport":
        """The report from parsed JSON. Fields of later versions are ignored.

        Raises:
            TypeError: A field is missing.
        """
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})
