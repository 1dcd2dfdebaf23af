"""Consumers whose commits and lag are known at each second, as the job's measures see them batch by batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.lag.settings import TopicSettings
from tests.support.job.folded import LAGS, measured_lags, measured_topics
from tests.support.job.frames import NOW_MS

_HALF_LIFE_MS = 60_000
_OFFSET_AT_START = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """The reader of one partition, to which records come at an even rate."""

    rate: int
    """Records/s that arrive."""
    commit_every_s: int
    first_commit_s: int
    speed: float = 1.0
    """Share of the arrivals that it reads."""
    skew_s: int = 0
    """How far the coordinator's clock is ahead."""
    hangs_at_s: int | None = None
    commits_on: bool = False
    """Once it hangs it commits the same offset again and again."""
    cut_at_s: int | None = None
    """The log and the group begin again at offset 0."""

    def cut(self, at_s: int) -> "Consumer":
        """The same with a log that is cut."""
        return replace(self, cut_at_s=at_s)

    def log_end(self, at_s: int) -> int:
        """What has come in by then."""
        if self.cut_at_s is not None and at_s >= self.cut_at_s:
            return self.rate * (at_s - self.cut_at_s)
        return _OFFSET_AT_START + self.rate * at_s

    def commit_s(self, at_s: int) -> int | None:
        """When the newest commit by then was made."""
        until = at_s if self.hangs_at_s is None or self.commits_on else min(at_s, self.hangs_at_s)
        if until < self.first_commit_s:
            return None
        return until - (until - self.first_commit_s) % self.commit_every_s

    def committed(self, commit_s: int) -> int:
        """The offset of the commit of this second."""
        read_s = commit_s if self.hangs_at_s is None else min(commit_s, self.hangs_at_s)
        begin = self.log_end(0) if self.cut_at_s is None or commit_s < self.cut_at_s else 0
        return begin + int((self.log_end(read_s) - begin) * self.speed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a batch wrote of a consumer."""

    at_s: int
    commit_s: int | None
    """When the commit was made in truth."""
    lag: int
    lag_at_commit: int | None
    status: str
    commit_interval_s: float | None
    commit_rate: float | None
    least_lag_at_commit: int | None


def lived(consumers: Sequence[Consumer], trigger_s: int, seconds: int) -> list[list[Seen]]:
    """Of each consumer what the batches wrote, from its first commit on; one batch every `trigger_s` seconds."""
    logs: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    seen: list[list[Seen]] = [[] for _ in consumers]
    for at_s in range(0, seconds + 1, trigger_s):
        settings = TopicSettings(at_ms=_ms(at_s), batch_id=0, listing_error=None, half_life_ms=_HALF_LIFE_MS)
        ends = [_log_end(number, one, at_s) for number, one in enumerate(consumers)]
        logs = measured_topics(logs, ends, settings).to_pylist()
        commits = [_commit(number, one, at_s, trigger_s) for number, one in enumerate(consumers)]
        measured = measured_lags(
            rows, logs, replace(LAGS, at_ms=_ms(at_s)), batch=[one for one in commits if one]
        )
        rows = measured.to_pylist()
        for row in rows:
            consumer = consumers[row["partition"]]
            seen[row["partition"]].append(
                Seen(
                    at_s=at_s,
                    commit_s=consumer.commit_s(at_s),
                    lag=row["lag"],
                    lag_at_commit=row["lag_at_commit"],
                    status=row["status"],
                    commit_interval_s=row["commit_interval_seconds"],
                    commit_rate=row["commit_rate"],
                    least_lag_at_commit=row["least_lag_at_commit"],
                )
            )
    return seen


def _ms(at_s: int) -> int:
    return NOW_MS + 1000 * at_s


def _log_end(number: int, consumer: Consumer, at_s: int) -> dict[str, Any]:
    return {
        "row_kind": "log_offset",
        "partition": number,
        "log_start_offset": 0,
        "log_end_offset": consumer.log_end(at_s),
        "isolation": "read_uncommitted",
        "observed_at_ms": _ms(at_s),
    }


def _commit(number: int, consumer: Consumer, at_s: int, trigger_s: int) -> dict[str, Any] | None:
    """The newest commit, where there is one since the batch before."""
    commit_s = consumer.commit_s(at_s)
    if commit_s is None or commit_s <= at_s - trigger_s:
        return None
    return {
        "row_kind": "commit",
        "partition": number,
        "position": commit_s,
        "committed_offset": consumer.committed(commit_s),
        "commit_timestamp_ms": _ms(commit_s + consumer.skew_s),
    }
