"""Any history of a log, however it is read: no record that counts is passed over, and none is read twice in a row."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from pipeline.kafka.positions import (
    Answer,
    End,
    Intake,
    Limits,
    PartitionKey,
    Position,
    Span,
    advance,
    choose_spans,
    shares,
)

KEYS: tuple[PartitionKey, ...] = (("t", 0), ("t", 1), ("u", 0))
KEPT_MS = 1_000


@dataclass(frozen=True)
class Step:
    """What happens to one partition before a batch, and in it."""

    grows: int = 0
    held_back: int = 0
    """Records at its end that belong to an open transaction."""
    deletes: int = 0
    """Records from the start of the log."""
    truncates: int = 0
    answers: bool = True
    read_share: int = 100
    """Percentage of its span that the batch gets to."""
    is_distrusted: bool = False


@dataclass
class Log:
    """One partition: its records by offset, and those that were read since reading last began at its start."""

    start: int = 0
    high: int = 0
    seen: set[int] = field(default_factory=set)

    def take(self, step: Step) -> Answer:
        if step.truncates and step.answers:
            # One that grows again before anybody has asked shows by the leader's epoch only, to the consumer.
            self.high = max(self.start, self.high - step.truncates)
            self.seen &= set(range(self.high))
        else:
            self.high += step.grows
        self.start = min(self.high, self.start + step.deletes)
        if not step.answers:
            return "it does not answer"
        stable = max(self.start, self.high - step.held_back)
        return End(log_start=self.start, stable=stable, high=self.high)


steps = st.builds(
    Step,
    grows=st.integers(0, 30),
    held_back=st.integers(0, 10),
    deletes=st.sampled_from([0, 0, 0, 5, 50]),
    truncates=st.sampled_from([0, 0, 0, 0, 20]),
    answers=st.sampled_from([True, True, True, False]),
    read_share=st.integers(0, 100),
    is_distrusted=st.sampled_from([False, False, False, True]),
)
batches = st.lists(st.tuples(*(steps for _ in KEYS)), max_size=12)


def _reached(intake: Intake, by_key: Mapping[PartitionKey, Step]) -> dict[PartitionKey, Position]:
    return {
        span.key: Position(span.start + (span.end - span.start) * by_key[span.key].read_share // 100, 1)
        for span in intake.spans
    }


@given(batches, st.integers(1, 40), st.integers(0, 600))
def test_no_record_is_passed_over_and_none_is_read_twice(
    history: list[tuple[Step, ...]], most_records: int, batch_ms: int
) -> None:
    logs = {key: Log() for key in KEYS}
    positions: dict[PartitionKey, Position] = {}
    limits = Limits(
        most_records=most_records, tombstones_kept_ms=dict.fromkeys("tu", KEPT_MS), tolerated_ms=0
    )
    for number, given_steps in enumerate(history):
        now_ms, by_key = number * batch_ms, dict(zip(KEYS, given_steps, strict=True))
        answers = {key: logs[key].take(by_key[key]) for key in KEYS}
        distrusted = {key: "why" for key in KEYS if by_key[key].is_distrusted}
        intake = choose_spans(positions, answers, distrusted=distrusted, limits=limits, now_ms=now_ms)
        reached = _reached(intake, by_key)
        for key in intake.reread:
            logs[key].seen = set()
        for span in intake.spans:
            _check_span(span, logs[span.key], answers[span.key])
            logs[span.key].seen |= set(range(span.start, reached[span.key].offset))

        positions = advance(positions, intake, reached, answers, now_ms=now_ms)

        assert set(intake.reread) <= {key for key, answer in answers.items() if isinstance(answer, End)}
        for key, position in positions.items():
            # Unless its leader has not been heard since, all up to the position was read and is still what was read.
            if isinstance(answers[key], End):
                assert position.offset <= logs[key].high
                assert set(range(logs[key].start, position.offset)) <= logs[key].seen
            assert position.at_end_ms <= now_ms


def _check_span(span: Span, log: Log, answer: Answer) -> None:
    assert isinstance(answer, End)
    assert log.start <= span.start < span.end <= answer.stable
    assert not set(range(span.start, span.end)) & log.seen


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 100)), max_size=30),
    st.integers(1, 8),
    st.integers(1, 60),
)
def test_shares_hold_every_span_once_and_are_balanced(
    lengths: list[tuple[int, int]], tasks: int, records_a_task: int
) -> None:
    spans = tuple(
        Span(topic="t", partition=number, start=start, end=start + length)
        for number, (start, length) in enumerate(lengths)
    )
    if not spans:
        return

    found = shares(spans, tasks=tasks, records_a_task=records_a_task)

    assert sorted((span for share in found for span in share), key=lambda span: span.partition) == list(spans)
    assert all(found)
    assert len(found) <= tasks
    loads = [sum(span.end - span.start for span in share) for share in found]
    longest = max(span.end - span.start for span in spans)
    # No share can be larger than the least one by more than what came to it last.
    assert max(loads) - min(loads) <= longest


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=20),
    st.integers(1, 20_000),
)
def test_budget_is_kept_up_to_rounding_and_every_backlog_moves_on(
    lengths: list[int], most_records: int
) -> None:
    answers: dict[PartitionKey, Answer] = {
        ("t", number): End(log_start=0, stable=length, high=length) for number, length in enumerate(lengths)
    }
    limits = Limits(
        most_records=most_records, tombstones_kept_ms=dict.fromkeys("tu", KEPT_MS), tolerated_ms=0
    )

    spans = choose_spans({}, answers, distrusted={}, limits=limits, now_ms=0).spans

    assert {span.partition for span in spans} == {number for number, length in enumerate(lengths) if length}
    assert all(span.start < span.end <= lengths[span.partition] for span in spans)
    assert sum(span.end - span.start for span in spans) <= min(sum(lengths), most_records + len(spans))
