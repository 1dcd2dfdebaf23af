"""Figures of a finished batch, for the monitor."""

from collections.abc import Mapping

from pipeline.kafka.positions import End
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.driver import Batch
from pipeline.run.health.monitor import BatchFigures


def figures_of(
    batch: Batch, seconds_by_step: Mapping[str, float], *, total_s: float, is_settled: bool
) -> BatchFigures:
    """What the batch has done."""
    decided = batch.decisions
    pairs = (
        ()
        if decided is None
        else zip(decided["decision"].to_pylist(), decided["reason"].to_pylist(), strict=True)
    )
    return BatchFigures(
        stamp=batch.clock,
        seconds=total_s,
        seconds_by_step=seconds_by_step,
        counts=batch.summary.counts,
        decisions=tuple(pairs),
        published=batch.published,
        # A batch that runs again asks nobody.
        unanswered=sum(isinstance(one, str) for one in batch.answers.values()) if batch.answers else None,
        offsets_left=_offsets_left(batch),
        is_settled=is_settled,
    )


def _offsets_left(batch: Batch) -> int | None:
    """Records of the offsets topic that are not read; None unless every leader has said where its log ends."""
    positions, left = batch.clock.positions or {}, 0
    answers = {key: one for key, one in batch.answers.items() if key[0] == OFFSETS_TOPIC}
    for key, answer in answers.items():
        if not isinstance(answer, End) or key not in positions:
            return None
        left += max(0, answer.high - positions[key].offset)
    return left if answers else None
