"""Start-up gate: which groups' rows can be trusted yet.

The offsets topic is compacted, so a state is complete only when every partition was read up to the end it had
when the job started. Until then the rows of the groups in that partition are provisional, and no plan is made
for them. One partition that cannot be read to its end (a transaction that never ends holds it back under
read_committed) does not hold up the groups of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_NAMED_PARTITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The end offsets that have to be reached."""

    topic: str
    targets: Mapping[int, int]
    """High watermark of each partition when the job started."""
    started_at_ms: int
    deadline_s: int

    def behind(self, position: Mapping[str, Mapping[str, int]]) -> dict[int, int]:
        """Records still to be read by partition, for the partitions that are not through.

        Args:
            position: How far the Kafka source is: next offset by topic and partition number, as it stands in
                a progress report; empty before the first batch has ended.
        """
        reached = position.get(self.topic, {})
        missing = {number: end - int(reached.get(str(number), 0)) for number, end in self.targets.items()}
        return {number: left for number, left in sorted(missing.items()) if left > 0}

    def reason(self, behind: Mapping[int, int], now_ms: int) -> str | None:
        """Why rows are provisional, in words; null when none are."""
        if not behind:
            return None
        worst = sorted(behind, key=lambda number: (-behind[number], number))[:_NAMED_PARTITIONS]
        named = ", ".join(f"{number} ({behind[number]} records left)" for number in worst)
        text = f"{len(behind)} of {len(self.targets)} partitions of {self.topic} not read to their end yet: {named}"
        if self.is_overdue(now_ms):
            text += (
                f"; more than {self.deadline_s} s since the start: an open transaction holds back what follows it "
                "(`kafka-transactions.sh find-hanging`), or start.deadline_s is too short for this cluster"
            )
        return text

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the deadline of `start.deadline_s` has passed."""
        return now_ms - self.started_at_ms > self.deadline_s * 1000
