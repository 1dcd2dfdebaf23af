"""What a batch reads next, how far that brings it, and when a position no longer counts."""

from typing import Any

import pytest

from pipeline.kafka.positions import (
    NEVER_READ,
    Answer,
    End,
    Intake,
    Limits,
    PartitionKey,
    Position,
    Span,
    advance,
    choose_spans,
    from_fields,
    shares,
    to_fields,
)

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
LIMITS = Limits(most_records=1_000, tombstones_kept_ms={"t": 24 * HOUR_MS}, tolerated_ms=0)
KEY: PartitionKey = ("t", 0)


def end(high: int, *, log_start: int = 0, stable: int | None = None) -> End:
    return End(log_start=log_start, stable=high if stable is None else stable, high=high)


def at(offset: int, *, epoch: int = 4, away_ms: int = 0) -> Position:
    return Position(offset, epoch, NOW_MS - away_ms)


def span(start: int, stop: int, *, partition: int = 0, epoch: int = 4) -> Span:
    return Span(topic="t", partition=partition, start=start, end=stop, leader_epoch=epoch)


def chosen(
    positions: dict[PartitionKey, Position], answers: dict[PartitionKey, Answer], **more: Any
) -> Intake:
    return choose_spans(positions, answers, **{"distrusted": {}, "limits": LIMITS, "now_ms": NOW_MS, **more})


def test_reading_goes_on_from_the_position_to_what_is_stable() -> None:
    intake = chosen({KEY: at(10)}, {KEY: end(40, stable=30)})

    assert intake == Intake(spans=(span(10, 30),))


def test_partition_that_was_never_read_is_read_from_its_log_start() -> None:
    intake = chosen({}, {KEY: end(40, log_start=7)})

    assert (intake.spans, intake.reread) == ((span(7, 40, epoch=-1),), {KEY: NEVER_READ})


def test_partition_that_was_never_read_and_is_empty_counts_as_read_from_its_start() -> None:
    intake = chosen({}, {KEY: end(7, log_start=7)})

    assert (intake.spans, intake.reread) == ((), {KEY: NEVER_READ})


def test_partition_at_its_end_is_not_read() -> None:
    assert chosen({KEY: at(40)}, {KEY: end(40)}) == Intake()


def test_position_behind_what_is_stable_waits_for_the_transaction_to_end() -> None:
    # A leader that has just been elected may know less of what is stable than the one before it.
    assert chosen({KEY: at(35)}, {KEY: end(40, stable=30)}) == Intake()


def test_partition_without_an_answer_is_left_alone() -> None:
    intake = chosen({KEY: at(10)}, {KEY: "broker 1 does not answer", ("t", 1): "it has no leader"})

    assert intake == Intake()


@pytest.mark.parametrize(
    ("position", "answer", "why"),
    [
        pytest.param(at(41), end(40), "truncated, restored or re-created", id="beyond the end of the log"),
        pytest.param(at(6), end(40, log_start=7), "deleted before they were read", id="before its start"),
        pytest.param(
            at(10, away_ms=24 * HOUR_MS + 1), end(40), "deletions may have been missed", id="away too long"
        ),
    ],
)
def test_position_that_no_longer_holds_is_read_again_from_the_log_start(
    position: Position, answer: End, why: str
) -> None:
    intake = chosen({KEY: position}, {KEY: answer})

    assert why in intake.reread[KEY]
    assert intake.spans == (span(answer.log_start, 40, epoch=-1),)


@pytest.mark.parametrize(
    ("position", "answer"),
    [
        pytest.param(at(40), end(40), id="at the end of the log"),
        pytest.param(at(7), end(40, log_start=7), id="at its start"),
        pytest.param(at(10, away_ms=24 * HOUR_MS), end(40), id="away as long as tombstones are kept"),
    ],
)
def test_position_that_only_just_holds_is_kept(position: Position, answer: End) -> None:
    assert chosen({KEY: position}, {KEY: answer}).reread == {}


@pytest.mark.parametrize(
    ("positions", "answer", "distrusted", "is_beheaded"),
    [
        pytest.param({KEY: at(6)}, end(40, log_start=7), {}, True, id="deleted before it was read"),
        pytest.param({}, end(40, log_start=7), {}, True, id="all is to be read again"),
        pytest.param(
            {KEY: at(10, away_ms=25 * HOUR_MS)},
            end(40, log_start=7),
            {},
            True,
            id="away too long, and cut before",
        ),
        pytest.param({KEY: at(10, away_ms=25 * HOUR_MS)}, end(40), {}, False, id="away too long, and whole"),
        pytest.param({KEY: at(41)}, end(40, log_start=7), {}, False, id="its tail is lost"),
        pytest.param({KEY: at(10)}, end(40, log_start=7), {KEY: "log truncated: x"}, False, id="truncated"),
        pytest.param({KEY: at(10)}, end(40, log_start=7), {}, False, id="cut behind the position"),
    ],
)
def test_log_without_its_beginning_does_not_show_what_is_gone(
    positions: dict[PartitionKey, Position],
    answer: End,
    distrusted: dict[PartitionKey, str],
    is_beheaded: bool,
) -> None:
    intake = chosen(positions, {KEY: answer}, distrusted=distrusted)

    assert (KEY in intake.beheaded) == is_beheaded


def test_partition_that_each_batch_reads_again_is_told_from_one_that_was_away() -> None:
    limits = Limits(
        most_records=1, tombstones_kept_ms={"t": 5_000}, tolerated_ms=0, followed=frozenset({KEY})
    )
    positions = {KEY: at(10, away_ms=30_000), ("t", 1): at(10, away_ms=30_000)}

    intake = chosen(positions, {KEY: end(10), ("t", 1): end(10)}, limits=limits)

    assert intake.impatient == (KEY,)
    assert "for 30.0 s, and its tombstones are kept for 5.0 s" in intake.reread["t", 1]


def test_distrusted_partition_is_read_again_whatever_its_leader_says() -> None:
    intake = chosen({KEY: at(10)}, {KEY: end(40)}, distrusted={KEY: "log truncated: epoch 3"})

    assert intake == Intake(spans=(span(0, 40, epoch=-1),), reread={KEY: "log truncated: epoch 3"})


def test_backlog_is_shared_out_in_proportion_and_every_partition_moves_on() -> None:
    answers: dict[PartitionKey, Answer] = {("t", 0): end(9_000), ("t", 1): end(1_000), ("t", 2): end(1)}
    positions = {key: at(0) for key in answers}

    spans = chosen(
        positions, answers, limits=Limits(most_records=100, tombstones_kept_ms={"t": HOUR_MS}, tolerated_ms=0)
    ).spans

    assert spans == (span(0, 90), span(0, 10, partition=1), span(0, 1, partition=2))


def test_backlog_that_fits_is_read_whole() -> None:
    answers: dict[PartitionKey, Answer] = {("t", 0): end(999), ("t", 1): end(1)}

    spans = chosen({key: at(0) for key in answers}, answers).spans

    assert spans == (span(0, 999), span(0, 1, partition=1))


def test_batch_reads_a_backlog_of_control_topics_in_pieces_and_all_of_the_others() -> None:
    limits = Limits(
        most_records=4_000_000,
        tombstones_kept_ms={},
        tolerated_ms=HOUR_MS,
        control_topics=frozenset({"acks", "orders"}),
    )
    answers: dict[PartitionKey, Answer] = {
        ("acks", 0): end(135_000),
        ("orders", 0): end(15_000),
        ("t", 0): end(1_000_000),
    }

    intake = chosen({key: at(0) for key in answers}, answers, limits=limits)

    assert {span.topic: span.end for span in intake.spans} == {
        "acks": 35_000,
        "orders": 15_000,
        "t": 1_000_000,
    }
    assert intake.left == 100_000


def advanced(
    before: dict[PartitionKey, Position],
    answer: Answer,
    *,
    reached: Position | None = None,
    reread: bool = False,
) -> Position:
    intake = Intake(reread={KEY: "why"} if reread else {})
    after = advance(before, intake, {} if reached is None else {KEY: reached}, {KEY: answer}, now_ms=NOW_MS)
    return after[KEY]


def test_partition_read_to_its_end_is_there_now() -> None:
    assert advanced({KEY: at(10, away_ms=HOUR_MS)}, end(40), reached=Position(40, 5)) == Position(
        40, 5, NOW_MS
    )


def test_partition_with_nothing_new_is_at_its_end_now() -> None:
    assert advanced({KEY: at(40, away_ms=HOUR_MS)}, end(40)) == at(40)


def test_partition_held_back_by_a_transaction_is_at_its_end_now() -> None:
    # What an open transaction holds back is not compacted, either.
    assert advanced({KEY: at(30, away_ms=HOUR_MS)}, end(40, stable=30)) == at(30)


def test_partition_read_in_part_was_at_its_end_when_it_was() -> None:
    before = {KEY: at(10, away_ms=HOUR_MS)}

    assert advanced(before, end(40), reached=Position(39, 5)) == Position(39, 5, NOW_MS - HOUR_MS)


def test_partition_read_in_part_from_its_start_counts_from_the_moment_reading_began() -> None:
    before = {KEY: at(10, away_ms=25 * HOUR_MS)}

    assert advanced(before, end(40), reached=Position(5, 5), reread=True) == Position(5, 5, NOW_MS)


def test_partition_read_again_of_which_nothing_came_stands_at_its_start() -> None:
    assert advanced({KEY: at(99)}, end(7, log_start=7), reread=True) == Position(7, -1, NOW_MS)


def test_partition_without_an_answer_stays_where_it_was() -> None:
    before = at(10, away_ms=HOUR_MS)

    assert advanced({KEY: before}, "it has no leader") == before


def test_shares_are_as_many_as_there_is_work_for() -> None:
    spans = tuple(span(0, 10, partition=number) for number in range(5))

    assert len(shares(spans, tasks=3, records_a_task=10)) == 3
    assert len(shares(spans, tasks=3, records_a_task=25)) == 2
    assert len(shares(spans, tasks=3, records_a_task=1_000)) == 1
    assert len(shares(spans[:2], tasks=3, records_a_task=1)) == 2


def test_longest_span_has_a_share_of_its_own_when_it_outweighs_the_others() -> None:
    spans = (span(0, 10), span(0, 100, partition=1), span(0, 20, partition=2))

    assert shares(spans, tasks=2, records_a_task=1) == [[spans[1]], [spans[2], spans[0]]]


def test_positions_survive_json() -> None:
    positions = {("t", 0): Position(5, 2, 9), ("t", 11): Position(6), ("u", 0): Position(0, -1, 3)}

    assert from_fields(to_fields(positions)) == positions
