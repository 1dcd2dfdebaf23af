"""Readiness: which groups' rows can be trusted at this moment.

The offsets topic is compacted, so a state is complete only when every partition was read up to the end it had
when the job started. Until then the rows of the groups in that partition are provisional, and no plan is made
for them. The same holds later for a partition that stays behind an end it had some time ago (a transaction that
never ends holds back all that follows it under read_committed), and for one whose leader does not answer: the
commits known of it may be old ones. One such partition does not hold up the groups of the others.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pipeline.kafka.positions import Answer, End

_NAMED_PARTITIONS = 3
_LISTED_PARTITIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """An end offset that must be reached."""

    end: int
    due_ms: int
    """Time from which the partition counts as behind."""
    is_first: bool
    """The end to reach before anything is known about the partition."""


@dataclass(slots=True, kw_only=True)
class Readiness:
    """The end offsets that must be reached, at the start and later."""

    topic: str
    started_at_ms: int
    deadline_s: int
    """Time from the start to `is_overdue`."""
    tolerance_s: int
    """Time for which a seen end may stay unreached after the start."""
    _targets: dict[int, _Target] = field(default_factory=dict)
    _unanswered: dict[int, str] = field(default_factory=dict)

    def observe(
        self,
        answers: Mapping[int, Answer],
        offsets: Mapping[int, int],
        *,
        reread: Collection[int] = (),
        now_ms: int,
    ) -> None:
        """Record what a batch has seen and read.

        Args:
            answers: Of the leaders of all partitions, before the batch has read.
            offsets: Next offset to read, after it has.
            reread: Partitions that it began to read from their log start.
            now_ms: The batch's clock.
        """
        self._unanswered = {number: why for number, why in answers.items() if isinstance(why, str)}
        due_ms = now_ms + self.tolerance_s * 1000
        for number in reread:
            # Whether or not its leader still answers: nothing is known of it until its end is reached.
            self._targets.pop(number, None)
        for number, end in answers.items():
            if not isinstance(end, End):
                continue
            target = self._targets.get(number)
            if target is None:
                target = self._targets[number] = _Target(end=end.high, due_ms=now_ms, is_first=True)
            if offsets.get(number, 0) >= target.end:
                self._targets[number] = _Target(end=end.high, due_ms=due_ms, is_first=False)

    def behind(self, offsets: Mapping[int, int], now_ms: int) -> dict[int, int | None]:
        """Return the unread records of partitions whose groups cannot be trusted; null if unknown."""
        left = {
            number: target.end - offsets.get(number, 0)
            for number, target in self._targets.items()
            if target.due_ms <= now_ms
        }
        behind: dict[int, int | None] = {number: records for number, records in left.items() if records > 0}
        return dict(sorted((behind | dict.fromkeys(self._unanswered)).items()))

    def reason(self, behind: Mapping[int, int | None], now_ms: int) -> str | None:
        """Return why rows are provisional; null if none are."""
        parts = [*self._why_unanswered(), *self._why_unread(behind, now_ms)]
        return "; ".join(parts) or None

    def _why_unanswered(self) -> list[str]:
        by_reason: dict[str, list[int]] = defaultdict(list)
        for number, why in self._unanswered.items():
            by_reason[why].append(number)
        return [
            f"{len(numbers)} of {self._known} partitions of {self.topic} cannot be read: {why}: "
            f"{_numbers(numbers)}; their groups keep their last known commits"
            for why, numbers in sorted(by_reason.items())
        ]

    def _why_unread(self, behind: Mapping[int, int | None], now_ms: int) -> list[str]:
        left = {
            number: records
            for number, records in behind.items()
            if records is not None and number not in self._unanswered
        }
        if not left:
            return []
        worst = sorted(left, key=lambda number: (-left[number], number))[:_NAMED_PARTITIONS]
        named = ", ".join(f"{number} ({left[number]})" for number in worst)
        text = (
            f"{len(left)} of {self._known} partitions of {self.topic} not read to their end yet, "
            f"{sum(left.values())} records left, most of them in {named}"
        )
        held = "an open transaction holds back the records after it (`kafka-transactions.sh find-hanging`)"
        if any(not self._targets[number].is_first for number in left):
            text += f"; no progress for {self.tolerance_s} s: {held}, or source.max_offsets_per_trigger is too small"
        elif self.is_overdue(now_ms):
            text += (
                f"; more than {self.deadline_s} s since the start: {held}, or start.deadline_s is too short "
                "for this cluster"
            )
        return [text]

    @property
    def _known(self) -> int:
        return len(self._targets.keys() | self._unanswered.keys())

    def is_overdue(self, now_ms: int) -> bool:
        """Return whether the deadline of `start.deadline_s` has passed."""
        return now_ms - self.started_at_ms > self.deadline_s * 1000


def _numbers(numbers: list[int]) -> str:
    listed = ", ".join(map(str, sorted(numbers)[:_LISTED_PARTITIONS]))
    more = len(numbers) - _LISTED_PARTITIONS
    return f"partition{'s' if len(numbers) > 1 else ''} {listed}" + (f" and {more} more" if more > 0 else "")
