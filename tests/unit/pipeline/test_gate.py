"""The gate: what must be read before rows are trusted, at start and ever after."""

import pytest

from pipeline.gate import Gate

STARTED_MS = 1_000
ENDS = {0: 10, 1: 0, 2: 500}
ALL_READ = {"offsets": {"0": 12, "1": 3, "2": 500}}


@pytest.fixture
def gate() -> Gate:
    return Gate(topic="offsets", ends_at_start=ENDS, started_at_ms=STARTED_MS, deadline_s=60, tolerance_s=90)


def test_before_the_first_batch_every_partition_with_records_is_behind(gate: Gate) -> None:
    assert gate.behind({}, STARTED_MS) == {0: 10, 2: 500}


def test_partition_read_to_its_end_opens_on_its_own(gate: Gate) -> None:
    assert gate.behind({"offsets": {"0": 10, "2": 499}}, STARTED_MS) == {2: 1}


def test_all_read_leaves_no_reason(gate: Gate) -> None:
    behind = gate.behind(ALL_READ, STARTED_MS)

    assert behind == {}
    assert gate.reason(behind, now_ms=10**12) is None


def test_reason_names_the_worst_partitions_first(gate: Gate) -> None:
    reason = gate.reason({0: 10, 2: 500}, now_ms=2_000)

    assert (
        reason
        == "2 of 3 partitions of offsets not read to their end yet: 2 (500 records left), 0 (10 records left)"
    )


def test_after_the_deadline_the_reason_says_what_to_look_for(gate: Gate) -> None:
    assert not gate.is_overdue(61_000)
    assert gate.is_overdue(61_001)
    assert "open transaction" in (gate.reason({0: 10}, now_ms=61_001) or "")


def test_end_seen_later_that_stays_unreached_for_the_tolerated_time_closes_its_partition(gate: Gate) -> None:
    gate.observe({0: 12, 1: 9, 2: 500}, ALL_READ, now_ms=100_000)

    assert gate.behind(ALL_READ, 189_999) == {}
    assert gate.behind(ALL_READ, 190_000) == {1: 6}
    assert "no progress for 90 s: an open transaction" in (gate.reason({1: 6}, 190_000) or "")


def test_partition_that_follows_a_busy_log_is_never_behind(gate: Gate) -> None:
    for second in range(0, 1_000, 30):
        position = {"offsets": {"0": 10 + second, "1": 0, "2": 500}}
        gate.observe({0: 40 + second, 1: 0, 2: 500}, position, now_ms=second * 1_000 + STARTED_MS)

        assert gate.behind(position, second * 1_000 + STARTED_MS) == {}


def test_start_is_not_forgiven_by_ends_seen_before_it_was_read(gate: Gate) -> None:
    gate.observe({0: 99, 1: 99, 2: 999}, {}, now_ms=STARTED_MS)

    assert gate.behind({}, STARTED_MS) == {0: 10, 2: 500}


def test_partition_opens_again_when_it_has_caught_up(gate: Gate) -> None:
    gate.observe({0: 12, 1: 9, 2: 500}, ALL_READ, now_ms=100_000)
    caught_up = {"offsets": {"0": 12, "1": 9, "2": 500}}

    gate.observe({0: 12, 1: 20, 2: 500}, caught_up, now_ms=300_000)

    assert gate.behind(caught_up, 300_000) == {}
