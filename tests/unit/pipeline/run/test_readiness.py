"""Readiness: what must be read before rows are trusted, at start and ever after."""

import pytest

from pipeline.kafka.positions import Answer, End
from pipeline.run.readiness import Readiness

STARTED_MS = 1_000
TOLERANCE_MS = 90_000
ALL_READ = {0: 10, 1: 0, 2: 500}


@pytest.fixture
def readiness() -> Readiness:
    return Readiness(
        topic="offsets", started_at_ms=STARTED_MS, deadline_s=60, tolerance_s=TOLERANCE_MS // 1000
    )


def ends(*high: int, **more: Answer) -> dict[int, Answer]:
    """Ends of partitions 0, 1, …; `p1="why"` says what else a leader has answered."""
    found: dict[int, Answer] = {
        number: End(log_start=0, stable=end, high=end) for number, end in enumerate(high)
    }
    return found | {int(name[1:]): answer for name, answer in more.items()}


ENDS = ends(10, 0, 500)


def test_first_ends_that_are_seen_have_to_be_reached(readiness: Readiness) -> None:
    readiness.observe(ENDS, {0: 4, 1: 0, 2: 200}, now_ms=STARTED_MS)

    assert readiness.behind({0: 4, 1: 0, 2: 200}, STARTED_MS) == {0: 6, 2: 300}


def test_partition_read_to_its_end_opens_on_its_own(readiness: Readiness) -> None:
    readiness.observe(ENDS, {}, now_ms=STARTED_MS)

    assert readiness.behind({0: 10, 2: 499}, STARTED_MS) == {2: 1}


def test_batch_that_reads_everything_leaves_nothing_behind_and_no_reason(readiness: Readiness) -> None:
    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS)

    behind = readiness.behind(ALL_READ, STARTED_MS)

    assert behind == {}
    assert readiness.reason(behind, now_ms=10**12) is None


def test_end_is_where_the_log_ends_and_not_where_an_open_transaction_holds_it_back(
    readiness: Readiness,
) -> None:
    readiness.observe({0: End(log_start=0, stable=4, high=10)}, {0: 4}, now_ms=STARTED_MS)

    assert readiness.behind({0: 4}, STARTED_MS) == {0: 6}


def test_reason_names_the_worst_partitions_first(readiness: Readiness) -> None:
    readiness.observe(ENDS, {}, now_ms=STARTED_MS)

    reason = readiness.reason(readiness.behind({}, STARTED_MS), now_ms=2_000)

    assert (
        reason
        == "2 of 3 partitions of offsets not read to their end yet, 510 records left, most of them in 2 (500), 0 (10)"
    )


def test_after_the_deadline_the_reason_says_what_to_look_for(readiness: Readiness) -> None:
    readiness.observe(ENDS, {}, now_ms=STARTED_MS)

    assert not readiness.is_overdue(61_000)
    assert readiness.is_overdue(61_001)
    assert "open transaction" in (readiness.reason({0: 10}, now_ms=61_001) or "")


def test_end_seen_later_that_stays_unreached_for_the_tolerated_time_closes_its_partition(
    readiness: Readiness,
) -> None:
    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS)
    stuck = {0: 12, 1: 0, 2: 500}
    readiness.observe(ends(12, 9, 500), stuck, now_ms=100_000)

    readiness.observe(ends(12, 11, 500), stuck, now_ms=110_000)

    due_ms = 100_000 + TOLERANCE_MS
    assert readiness.behind(stuck, due_ms - 1) == {}
    assert readiness.behind(stuck, due_ms) == {1: 9}
    assert "no progress for 90 s: an open transaction" in (readiness.reason({1: 9}, due_ms) or "")


def test_partition_that_follows_a_busy_log_is_never_behind(readiness: Readiness) -> None:
    for second in range(0, 1_000, 30):
        read = {0: 10 + second, 1: 0, 2: 500}
        # While a batch reads the end moves on.
        readiness.observe(ends(10 + second, 0, 500), read, now_ms=second * 1_000 + STARTED_MS)

        assert readiness.behind(read, second * 1_000 + STARTED_MS) == {}


def test_start_is_not_forgiven_by_ends_seen_before_it_was_read(readiness: Readiness) -> None:
    readiness.observe(ENDS, {}, now_ms=STARTED_MS)
    readiness.observe(ends(99, 99, 999), {}, now_ms=STARTED_MS + 1)

    assert readiness.behind({}, STARTED_MS + 1) == {0: 10, 2: 500}


def test_partition_opens_again_when_it_has_caught_up(readiness: Readiness) -> None:
    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS)
    readiness.observe(ends(12, 9, 500), ALL_READ, now_ms=100_000)
    caught_up = {0: 12, 1: 9, 2: 500}

    readiness.observe(ends(12, 20, 500), caught_up, now_ms=300_000)

    assert readiness.behind(caught_up, 300_000) == {}


def test_partition_read_again_is_behind_at_once_and_until_its_end(readiness: Readiness) -> None:
    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS)

    readiness.observe(ENDS, {0: 10, 1: 0, 2: 20}, reread=[2], now_ms=STARTED_MS + 1)

    assert readiness.behind({0: 10, 1: 0, 2: 20}, STARTED_MS + 1) == {2: 480}
    assert readiness.behind(ALL_READ, STARTED_MS + 1) == {}


def test_partition_read_again_by_one_batch_is_not_behind_after_it(readiness: Readiness) -> None:
    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS)

    readiness.observe(ends(10, 0, 30), {0: 10, 1: 0, 2: 30}, reread=[2], now_ms=STARTED_MS + 1)

    assert readiness.behind({0: 10, 1: 0, 2: 30}, 10**12) == {}


def test_partition_without_an_answer_is_behind_by_nobody_knows_how_much_and_named(
    readiness: Readiness,
) -> None:
    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS)

    readiness.observe(ends(10, 0, p2="broker 1 does not answer"), ALL_READ, now_ms=STARTED_MS + 1)

    behind = readiness.behind(ALL_READ, STARTED_MS + 1)
    assert behind == {2: None}
    assert readiness.reason(behind, STARTED_MS + 1) == (
        "1 of 3 partitions of offsets cannot be read: broker 1 does not answer: partition 2; "
        "their groups keep their last known commits"
    )


def test_partition_whose_leader_answers_again_is_no_longer_behind(readiness: Readiness) -> None:
    readiness.observe(ends(10, 0, p2="it has no leader"), {0: 10, 1: 0}, now_ms=STARTED_MS)

    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS + 1)

    assert readiness.behind(ALL_READ, STARTED_MS + 1) == {}


def test_partition_unanswered_at_the_start_has_to_be_read_like_any_other(readiness: Readiness) -> None:
    readiness.observe(ends(10, 0, p2="it has no leader"), {0: 10, 1: 0}, now_ms=STARTED_MS)

    readiness.observe(ENDS, {0: 10, 1: 0, 2: 60}, now_ms=STARTED_MS + 1)

    assert readiness.behind({0: 10, 1: 0, 2: 60}, STARTED_MS + 1) == {2: 440}


def test_leader_that_falls_silent_while_its_partition_is_read_again_leaves_it_behind_until_its_end(
    readiness: Readiness,
) -> None:
    readiness.observe(ENDS, ALL_READ, now_ms=STARTED_MS)
    half = {0: 10, 1: 0, 2: 60}
    readiness.observe(ends(10, 0, p2="its leader does not answer"), half, reread=[2], now_ms=STARTED_MS + 1)

    readiness.observe(ENDS, half, now_ms=STARTED_MS + 2)

    # Rows that the reading has not come to yet would be taken for deleted.
    assert readiness.behind(half, STARTED_MS + 2) == {2: 440}


def test_long_list_of_unanswered_partitions_is_cut(readiness: Readiness) -> None:
    readiness.observe(dict.fromkeys(range(50), "it has no leader"), {}, now_ms=STARTED_MS)

    reason = readiness.reason(readiness.behind({}, STARTED_MS), STARTED_MS) or ""

    assert "18, 19 and 30 more; their groups" in reason
