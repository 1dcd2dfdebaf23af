"""Gate: which groups' rows can be trusted at this moment.

The offsets topic is compacted, so a state is complete only when every partition was read up to the end it had
when the job started. Until then the rows of the groups in that partition are provisional, and no plan is made
for them. The same holds later for a partition that stays behind an end it had some time ago: a transaction
that never ends holds back all that follows it under read_committed, and the commits known of it are old ones.
One such partition does not hold up the groups of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_NAMED_PARTITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """An end offset that was seen, and has to be reached."""

    end: int
    due_ms: int
    """From when on the partition counts as behind."""


@dataclass(slots=True, kw_only=True)
class Gate:
    """The end offsets that have to be reached, at start and ever after."""

    topic: str
    ends_at_start: Mapping[int, int]
    """High watermark of each partition when the job started."""
    started_at_ms: int
    deadline_s: int
    """From the start to `is_overdue`."""
    tolerance_s: int
    """How long after the start an end that was seen may stay unreached."""
    _targets: dict[int, _Target] = field(init=False)

    def __post_init__(self) -> None:
        self._targets = {
            number: _Target(end=end, due_ms=self.started_at_ms) for number, end in self.ends_at_start.items()
        }

    def observe(
        self, ends: Mapping[int, int], position: Mapping[str, Mapping[str, int]], now_ms: int
    ) -> None:
        """Give every partition that has reached its end the present one to reach.

        Args:
            ends: High watermark of each partition, now.
            position: See `behind`.
            now_ms: The batch's clock.
        """
        due_ms = now_ms + self.tolerance_s * 1000
        for number in ends.keys() & self._targets.keys():
            if self._left(number, position) <= 0:
                self._targets[number] = _Target(end=ends[number], due_ms=due_ms)

    def behind(self, position: Mapping[str, Mapping[str, int]], now_ms: int) -> dict[int, int]:
        """Records still to be read by partition, for the partitions that are not through.

        Args:
            position: How far the Kafka source is: next offset by topic and partition number, as it stands in
                a progress report; empty before the first batch has ended.
            now_ms: The batch's clock.
        """
        left = {
            number: self._left(number, position)
            for number, target in sorted(self._targets.items())
            if target.due_ms <= now_ms
        }
        return {number: records for number, records in left.items() if records > 0}

    def _left(self, number: int, position: Mapping[str, Mapping[str, int]]) -> int:
        return self._targets[number].end - int(position.get(self.topic, {}).get(str(number), 0))

    def reason(self, behind: Mapping[int, int], now_ms: int) -> str | None:
        """Why rows are provisional, in words; null when none are."""
        if not behind:
            return None
        worst = sorted(behind, key=lambda number: (-behind[number], number))[:_NAMED_PARTITIONS]
        named = ", ".join(f"{number} ({behind[number]} records left)" for number in worst)
        text = f"{len(behind)} of {len(self._targets)} partitions of {self.topic} not read to their end yet: {named}"
        held = "an open transaction holds back what follows it (`kafka-transactions.sh find-hanging`)"
        if any(self._targets[number].due_ms > self.started_at_ms for number in behind):
            text += f"; no progress for {self.tolerance_s} s: {held}, or source.max_offsets_per_trigger is too small"
        elif self.is_overdue(now_ms):
            text += (
                f"; more than {self.deadline_s} s since the start: {held}, or start.deadline_s is too short "
                "for this cluster"
            )
        return text

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the deadline of `start.deadline_s` has passed."""
        return now_ms - self.started_at_ms > self.deadline_s * 1000
