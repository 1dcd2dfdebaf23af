"""The start-up gate."""

from pipeline.gate import Gate

GATE = Gate(topic="offsets", targets={0: 10, 1: 0, 2: 500}, started_at_ms=1_000, deadline_s=60)


def test_before_the_first_batch_every_partition_with_records_is_behind() -> None:
    assert GATE.behind({}) == {0: 10, 2: 500}


def test_partition_read_to_its_target_opens_on_its_own() -> None:
    assert GATE.behind({"offsets": {"0": 10, "2": 499}}) == {2: 1}


def test_all_read_leaves_no_reason() -> None:
    behind = GATE.behind({"offsets": {"0": 12, "1": 3, "2": 500}})

    assert behind == {}
    assert GATE.reason(behind, now_ms=10**12) is None


def test_reason_names_the_worst_partitions_first() -> None:
    reason = GATE.reason({0: 10, 2: 500}, now_ms=2_000)

    assert (
        reason
        == "2 of 3 partitions of offsets not read to their end yet: 2 (500 records left), 0 (10 records left)"
    )


def test_after_the_deadline_the_reason_says_what_to_look_for() -> None:
    assert not GATE.is_overdue(61_000)
    assert GATE.is_overdue(61_001)
    assert "open transaction" in (GATE.reason({0: 10}, now_ms=61_001) or "")
