"""What is measured of folded rows of groups."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lag.settings import LagSettings
from tests.support.job.folded import LAGS, measured_lags
from tests.support.job.frames import NOW_MS, at, member, shown

KNOWN = {
    "log_start_offset": 0,
    "log_end_offset": 100,
    "isolation": "read_uncommitted",
    "observed_at": at(-10),
}


def lags(
    stored: list[dict[str, Any]],
    logs: list[dict[str, Any]],
    *,
    batch: tuple[dict[str, Any], ...] = (),
    groups: tuple[dict[str, Any], ...] = (),
    reread: tuple[int, ...] = (),
    settings: LagSettings = LAGS,
) -> pa.Table:
    return measured_lags(stored, logs, settings, batch=batch, groups=groups, reread=reread)


COMMITTED = {"committed_offset": 40, "commit_position": 7, "commit_timestamp": at(-20)}


def test_lag_is_log_end_minus_committed_offset() -> None:
    assert shown(lags([COMMITTED], [KNOWN]), "lag", "raw_lag", "log_end_offset") == [(60, 60, 100)]


def test_lag_of_a_commit_below_log_start_counts_what_is_left() -> None:
    rows = shown(lags([COMMITTED], [KNOWN | {"log_start_offset": 70}]), "lag", "raw_lag", "status")

    assert rows == [(30, 60, "EXPIRED")]


BEYOND = KNOWN | {"log_end_offset": 30}
JUDGED = ("lag", "raw_lag", "log_end_offset", "lag_seconds", "status", "trend")


CUT = KNOWN | {"log_start_offset": 70}


def test_log_start_that_has_risen_past_a_commit_expires_it_with_the_next_batch() -> None:
    """Kafka Streams deletes what it has read from its repartition topics, right after a commit."""
    names = ("lag", "status", "retention_seconds")
    known = replace(LAGS, retention_ms={"t": 3_600_000})
    logs = [CUT | {"samples": [(NOW_MS - 60_000, 70), (NOW_MS - 10_000, 100)]}]

    first = lags([COMMITTED | {"log_start_offset": 40}], logs, settings=known)
    second = lags([COMMITTED | {"log_start_offset": 70}], logs, settings=known)
    read = lags([COMMITTED | {"log_start_offset": 70}], logs, settings=known, batch=(NEW,))

    assert shown(first, *names) == [(30, "OK", 3540.0)]
    assert shown(second, *names) == [(30, "EXPIRED", 0.0)]
    assert shown(read, "lag", "status") == [(10, "OK")]


def test_records_that_were_deleted_unread_are_not_drained_and_show_no_pace() -> None:
    window = [(20, NOW_MS - 60_000, 5), (40, NOW_MS - 20_000, 6)]
    expired = COMMITTED | {"log_start_offset": 70, "drain_rate": 2.0, "recent_commits": window}

    by_age = replace(LAGS, retention_ms={"t": 3_600_000})
    overtaken = expired | {"log_start_offset": 40}

    names = ("committed_offset", "drain_rate", "commit_rate")
    for skipped in (
        lags([expired], [CUT], batch=(NEW,)),
        # All between two batches.
        lags([overtaken], [CUT], batch=(NEW,), settings=by_age),
    ):
        assert shown(skipped, *names) == [(90, 2.0, None)]
        assert shown(skipped, "recent_commits") == [([(90, NOW_MS - 500, None)],)]
    # Without a retention the group may have had them deleted itself.
    purged = lags([overtaken], [CUT], batch=(NEW,))
    assert shown(purged, "commit_rate") == [(pytest.approx(70 / 59.5),)]


def test_commit_beyond_log_end_has_unknown_lag_and_not_0() -> None:
    caught_up = COMMITTED | {
        "lag": 0,
        "lag_at_commit": 0,
        "trend": "steady",
        "trend_lag": 0,
        "trend_at": at(-60),
    }

    rows = shown(lags([caught_up], [BEYOND]), *JUDGED, "lag_at_commit", "retention_seconds")

    assert rows == [(None, -10, 30, None, "UNKNOWN", None, None, None)]


def test_commit_beyond_log_end_that_is_old_or_a_last_stable_offset_has_no_negative_lag() -> None:
    for end in ({"error": "broker 1 does not answer"}, {"isolation": "read_committed"}):
        assert shown(lags([COMMITTED], [BEYOND | end]), *JUDGED[:-1]) == [(0, -10, 30, 0.0, "OK")]


def test_lag_is_known_again_when_a_cut_log_has_grown_past_the_commit_of_no_consumer() -> None:
    beyond = COMMITTED | {"lag": None, "raw_lag": -10, "status": "UNKNOWN"}
    by_consumer = beyond | {"leader_epoch": 3}
    other = KNOWN | {"topic_id": "B", "topic_id_at": at(-10)}

    assert shown(lags([beyond], [KNOWN]), "lag", "raw_lag", "status") == [(60, 60, "OK")]
    within = by_consumer | {"lag": 20, "raw_lag": 20}
    assert shown(lags([within], [KNOWN]), "lag", "raw_lag", "status") == [(60, 60, "OK")]
    # It read other records, that the log has lost, and may read those that took their place.
    for raw_lag in (-10, 5):
        rows = lags([by_consumer | {"raw_lag": raw_lag}], [KNOWN])
        assert shown(rows, "lag", "raw_lag", "status") == [(None, 60, "UNKNOWN")]
    again = {"row_kind": "commit", "position": 7, "committed_offset": 40, "leader_epoch": 3}
    rows = lags([by_consumer], [KNOWN], batch=(again,), reread=(3,))
    assert shown(rows, "lag", "status") == [(None, "UNKNOWN")]
    assert shown(lags([by_consumer], [KNOWN], batch=(NEW,)), "lag", "status") == [(10, "OK")]
    # Offsets of a topic that was made again are not known, and are of this topic with the first commit in it.
    of_other = by_consumer | {"raw_lag": None, "commit_topic_id": "A"}
    assert shown(lags([of_other], [other], batch=(NEW | {"topic_id": "B"},)), "lag") == [(10,)]


def test_unknown_log_end_gives_null_and_not_zero() -> None:
    unknown = {"log_end_offset": None, "isolation": "read_uncommitted"}

    assert shown(lags([COMMITTED], [unknown]), "lag", "raw_lag", "lag_seconds", "status") == [
        (None, None, None, "UNKNOWN")
    ]


def test_deleted_topic_has_no_lag_and_says_so() -> None:
    rows = shown(lags([COMMITTED], [KNOWN | {"deleted_at": at(-3)}]), "lag", "log_end_offset", "status")

    assert rows == [(None, None, "DELETED")]


def test_topic_that_no_broker_has_shown_is_unknown_and_not_deleted() -> None:
    assert shown(lags([COMMITTED], []), "lag", "log_end_offset", "status") == [(None, None, "UNKNOWN")]


def test_owner_and_generation_stand_beside_the_commit() -> None:
    owner = member("m", client_id="c", client_host="/h", group_instance_id="i", assigned={"t": [0]})

    rows = shown(
        lags([COMMITTED], [KNOWN], groups=({"generation": 6, "members": [owner]},)),
        *("assigned", "member_id", "group_instance_id", "client_id", "client_host", "generation"),
    )

    assert rows == [(True, "m", "i", "c", "/h", 6)]


def test_claims_on_partitions_that_do_not_exist_have_no_row() -> None:
    owner = member("m", assigned={"t": [-1, 0, 2**31 - 1], "nowhere": [0]})

    rows = shown(lags([], [KNOWN], groups=({"members": [owner]},)), "topic", "partition", "status")

    assert rows == [("t", 0, "NOT_COMMITTED")]


def test_rows_of_an_unread_offsets_partition_are_provisional() -> None:
    other = COMMITTED | {"partition": 1, "offsets_partition": 4}
    settings = replace(LAGS, behind=(4,))

    rows = shown(
        lags([COMMITTED, other], [KNOWN, KNOWN | {"partition": 1}], settings=settings),
        "partition",
        "provisional",
    )

    assert rows == [(0, False), (1, True)]


def test_commits_move_the_drain_rate_by_the_time_between_two_batches() -> None:
    new = {"row_kind": "commit", "position": 8, "committed_offset": 90, "commit_timestamp_ms": NOW_MS - 500}

    rows = lags([COMMITTED], [KNOWN], batch=(new,))

    assert shown(rows, "drain_rate", "committed_offset") == [(5.0, 90)]
    assert shown(rows, "recent_commits") == [([(90, NOW_MS - 500, None)],)]


def test_offsets_that_are_reset_while_the_group_has_no_members_do_not_move_the_drain_rate() -> None:
    before, after = (member(name, assigned={"t": [0]}) for name in "mn")
    known = COMMITTED | {"drain_rate": 2.0}
    owned = known | {"member_id": "m", "assigned": True}

    def rate(stored: dict[str, Any], **group: Any) -> float:
        (row,) = shown(lags([stored], [KNOWN], batch=(NEW,), groups=(group,)), "drain_rate")
        return float(row[0])

    empty = {"state": "Empty", "members": []}
    for stored in (known, owned):
        assert rate(stored, **empty, group_position=NEW["position"] - 1) == 2.0
        assert rate(stored, members=[after]) == 2.0
        # The last commit of a member that has left since.
        assert rate(stored, **empty, group_position=NEW["position"] + 1) > 2.0
    assert rate(owned, members=[before]) > 2.0
    # Consumers that call `assign()`: their group has no state, or an old one.
    later = known | {"commit_position": NEW["position"] - 1}
    assert rate(later, **empty, group_position=NEW["position"] - 2) > 2.0
    assert rate(known, members=[]) > 2.0


NEW = {"row_kind": "commit", "position": 8, "committed_offset": 90, "commit_timestamp_ms": NOW_MS - 500}


def test_drain_rate_stays_while_the_clock_of_the_batches_stands_still() -> None:
    # Each batch is 1 ms after the one before it, whatever time has passed.
    before = COMMITTED | {"updated_at": at(-0.001), "drain_rate": 2.0}

    rows = lags([before], [KNOWN], batch=(NEW,))

    assert shown(rows, "committed_offset", "drain_rate") == [(90, 2.0)]


def test_commits_that_were_read_late_do_not_move_the_drain_rate() -> None:
    # They came in between two batches, and were made in hours.
    late = COMMITTED | {"provisional": True, "drain_rate": 2.0}

    rows = lags([late], [KNOWN], batch=(NEW,))

    assert shown(rows, "committed_offset", "drain_rate") == [(90, 2.0)]


def test_commits_that_are_read_again_do_not_move_the_drain_rate_and_begin_a_new_window() -> None:
    known = COMMITTED | {
        "drain_rate": 2.0,
        "recent_commits": [(30, NOW_MS - 90_000, 5), (40, NOW_MS - 20_000, 6)],
    }

    rows = lags([known], [KNOWN], batch=(NEW,), reread=(3,))

    assert shown(rows, "committed_offset", "drain_rate") == [(90, 2.0)]
    assert shown(rows, "recent_commits") == [([(90, NOW_MS - 500, None)],)]


def test_partition_read_again_without_a_commit_keeps_its_window() -> None:
    known = COMMITTED | {"recent_commits": [(40, NOW_MS - 20_000, 6)]}

    rows = lags([known], [KNOWN], reread=(3,), settings=replace(LAGS, behind=(3,)))

    assert shown(rows, "recent_commits") == [([(40, NOW_MS - 20_000, 6)],)]


def test_lag_of_a_stopped_group_goes_on_growing() -> None:
    before, after = (
        shown(lags([COMMITTED], [KNOWN | {"log_end_offset": end}]), "lag")[0][0] for end in (100, 160)
    )

    assert (before, after) == (60, 120)


def turns(history_at: float | None, history_hash: int | None) -> bool:
    stored = COMMITTED | {
        "history_at": None if history_at is None else at(history_at),
        "history_hash": history_hash,
    }
    rows = shown(lags([stored], [KNOWN]), "history_at")
    return rows == [(at(0),)]


def test_history_is_due_when_new_when_changed_after_the_interval_and_at_the_latest_after_the_gap() -> None:
    says = int(shown(lags([COMMITTED], [KNOWN]), "history_hash")[0][0])

    assert turns(None, None)
    assert not turns(-59, says + 1)
    assert turns(-60, says + 1)
    assert not turns(-899, says)
    assert turns(-900, says)


def test_lag_that_grew_since_the_reference_is_growing() -> None:
    before = COMMITTED | {"log_observed_at": at(-30), "trend_lag": 10, "trend_at": at(-90)}
    answered = KNOWN | {"observed_at": at(0)}

    assert shown(lags([before], [answered]), "lag", "trend", "trend_lag", "trend_at") == [
        (60, "growing", 10, at(-90))
    ]
    assert shown(lags([before | {"trend": "falling"}], [KNOWN]), "trend") == [("growing",)]


@pytest.mark.parametrize(
    "stored",
    [
        {"log_observed_at": at(-10)},
        {"trend_lag": None, "trend_at": None},
        {"trend_at": at(-20)},
        {"commit_topic_id": "another"},
    ],
    ids=["no new answer", "nothing before", "too young", "another topic"],
)
def test_trend_is_unknown_with_too_little_to_tell(stored: dict[str, Any]) -> None:
    before = COMMITTED | {"log_observed_at": at(-30), "trend_lag": 10, "trend_at": at(-90)} | stored
    known = KNOWN | {"topic_id": "A", "topic_id_at": at(-10)}

    assert shown(lags([before], [known]), "trend") == [(None,)]


def test_provisional_row_has_no_trend_and_begins_anew() -> None:
    before = COMMITTED | {"log_observed_at": at(-30), "trend_lag": 10, "trend_at": at(-90)}

    rows = lags([before], [KNOWN], settings=replace(LAGS, behind=(3,)))

    assert shown(rows, "provisional", "trend", "trend_lag", "trend_at") == [(True, None, None, None)]


def test_retention_is_what_the_age_of_the_next_record_leaves() -> None:
    log = KNOWN | {"samples": [(NOW_MS - 60_000, 40), (NOW_MS - 10_000, 100)]}
    known = replace(LAGS, retention_ms={"t": 3_600_000})

    assert shown(lags([COMMITTED], [log], settings=known), "lag_seconds", "retention_seconds") == [
        (60.0, 3540.0)
    ]
    assert shown(lags([COMMITTED], [log]), "retention_seconds") == [(None,)]
    assert shown(
        lags([COMMITTED | {"committed_offset": 100}], [log], settings=known), "retention_seconds"
    ) == [(None,)]


def test_records_that_were_deleted_unread_leave_no_time() -> None:
    rows = lags([COMMITTED], [KNOWN | {"log_start_offset": 70}])

    assert shown(rows, "status", "retention_seconds") == [("EXPIRED", 0.0)]


@pytest.mark.parametrize(
    ("most_gap_s", "expected"),
    [(3599, (None, 0.0, True, None)), (3600, (9166, 3600.0, False, 0.0))],
)
def test_nothing_is_measured_on_a_line_across_a_time_in_which_nobody_asked(
    most_gap_s: int, expected: tuple[object, ...]
) -> None:
    """A burst arrived just before the driver came back; until then the group had read everything."""
    away_ms = 3_600_000
    samples = [(NOW_MS - away_ms - 30_000, 1_000), (NOW_MS - away_ms, 1_000), (NOW_MS, 11_000)]
    log = KNOWN | {"log_end_offset": 11_000, "observed_at": at(0), "samples": samples}
    old = COMMITTED | {"committed_offset": 1_000, "recent_commits": [(1_000, NOW_MS - away_ms, 0)]}
    again = NEW | {"committed_offset": 1_000, "commit_timestamp_ms": NOW_MS - 300_000}
    settings = replace(LAGS, most_gap_ms=most_gap_s * 1_000, retention_ms={"t": 1_800_000})

    found = lags([old], [log], batch=(again,), settings=settings)

    names = ("lag_at_commit", "lag_seconds", "lag_seconds_is_lower_bound", "retention_seconds")
    assert shown(found, *names) == [expected]
