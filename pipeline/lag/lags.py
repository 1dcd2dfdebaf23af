"""Lag: what is measured of each partition of a group, from its commit and what is known of the log."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.arrow_columns import bools, is_set
from pipeline.lag import samples
from pipeline.lag.age import LagAge, lag_age
from pipeline.lag.bounded_lists import emptied, entry, rows_of
from pipeline.lag.columns import (
    differ,
    field,
    floats,
    from_floats,
    from_int64s,
    from_millis,
    int64s,
    known_or,
    millis,
)
from pipeline.lag.commits import window as commit_window
from pipeline.lag.commits.at_commit import CLOCK_ERROR_MS, lag_at_commit
from pipeline.lag.commits.pace import commit_pace
from pipeline.lag.commits.window import CommitWindow
from pipeline.lag.history_turn import history_turn
from pipeline.lag.lag import UNKNOWN, difference, lag, raw_lag
from pipeline.lag.rates import drain_rate
from pipeline.lag.retention import kept_seconds, seconds_left
from pipeline.lag.samples import Samples
from pipeline.lag.settings import LagSettings
from pipeline.lag.status import STATUS_NAMES, Offsets, judge
from pipeline.lag.trend import NO_TREND, TREND_NAMES, LagNow, Trend, TrendPace, trend_of

_AS_FOLDED = (
    *("group_id", "topic", "partition", "offsets_partition"),
    *("committed_offset", "commit_timestamp", "commit_position", "leader_epoch", "confirmed"),
    "unconfirmed_reason",
)
# Six minutes, if a trend is told after two.
_REFERENCE_HALF_LIVES = 3
_OWNER = ("member_id", "group_instance_id", "client_id", "client_host", "generation")
_LEAST_ELAPSED_MS = 100
"""No two batches are closer, unless the driver's clock is behind the tables: then their times rise by 1 ms each."""


def measured_lags(batch: pa.RecordBatch, settings: LagSettings) -> dict[str, pa.Array]:
    """Columns of `schemas.PARTITION_LAG`, but for the cluster.

    Args:
        batch: `fold.commits.fold_commits`, with the partition's `log`.
        settings: What they depend on in addition.
    """
    old, log = batch["old"], batch["log"]
    # An unknown topic is not a deleted one: this user may not be allowed to describe it.
    is_deleted = is_set(field(log, "deleted_at"))
    offsets = _offsets(batch, is_known=is_set(log) & ~is_deleted)
    committed, start = offsets.committed, offsets.log_start
    ring = samples.from_arrow(field(log, "samples"))
    compared = _within_log(batch, offsets)
    records = lag(committed, start, compared.log_end)
    age = _age(ring, offsets, records, settings)
    topic_id = _commit_topic_id(batch)
    # What was read late came in at other times than it was committed, and offsets of another topic are other
    # offsets: no statement on speed, or on what the group did before.
    is_apart = bools(batch["is_reread"]) | differ(topic_id, field(old, "commit_topic_id"))
    kept_s = kept_seconds(batch["topic"], settings.retention_ms)
    has_skipped = _has_skipped(batch, start, kept_s)
    before = emptied(commit_window.from_arrow(field(old, "recent_commits")), is_apart | has_skipped)
    is_upgraded = _has_lag_when_seen(old, before)
    is_provisional = _is_provisional(int64s(batch["offsets_partition"]), settings.behind) | is_set(
        batch["unconfirmed_reason"]
    )
    at_commit = _lag_at_commit(
        batch,
        ring,
        compared,
        records=records,
        is_apart=is_apart,
        is_provisional=is_provisional,
        is_upgraded=is_upgraded,
        most_gap_ms=settings.most_gap_ms,
    )
    window = commit_window.append_commit(
        commit_window.without_raw_lag(before, is_upgraded),
        committed=committed,
        commit_timestamp_ms=known_or(millis(batch["commit_timestamp"]), settings.at_ms),
        lag=at_commit,
        is_new=bools(batch["has_new_commit"]) | _is_renewed(batch),
    )
    left_s = seconds_left(age, kept_s, lag=records, is_expired=committed < offsets.log_start_before)
    columns = _as_known(batch, offsets) | {
        "commit_topic_id": topic_id,
        "lag": from_int64s(records),
        "lag_at_commit": from_int64s(at_commit),
        "lag_seconds": from_floats(age.seconds),
        "lag_seconds_is_lower_bound": pa.array(age.is_lower_bound),
        "drain_rate": from_floats(_drained(batch, is_apart | has_skipped, settings)),
        "status": _status(window, ring, compared, topic_exists=~is_deleted, settings=settings),
        "provisional": pa.array(is_provisional),
        "recent_commits": commit_window.to_arrow(window),
        "retention_seconds": from_floats(left_s),
    }
    columns |= _pace(window) | _trend(old, columns, is_apart, settings)
    turn = history_turn(old, columns, settings.history, now_ms=settings.at_ms)
    return columns | {"history_at": from_millis(turn.at_ms), "history_hash": from_int64s(turn.says)}


def _age(ring: samples.Samples, offsets: Offsets, records: Int64s, settings: LagSettings) -> LagAge:
    return lag_age(
        ring,
        committed=offsets.committed,
        log_start=offsets.log_start,
        lag=records,
        now_ms=settings.at_ms,
        most_gap_ms=settings.most_gap_ms,
    )


def _status(
    window: CommitWindow,
    ring: samples.Samples,
    offsets: Offsets,
    *,
    topic_exists: Bools,
    settings: LagSettings,
) -> pa.Array:
    codes = judge(
        window,
        ring,
        offsets,
        topic_exists=topic_exists,
        now_ms=settings.at_ms,
        allowed_lag=settings.allowed_lag,
    )
    return pa.array(STATUS_NAMES).take(pa.array(codes))


def _as_known(batch: pa.RecordBatch, offsets: Offsets) -> dict[str, pa.Array]:
    """The columns that the commit, its owner and the log give as they are."""
    log = batch["log"]
    return {
        **{name: batch[name] for name in _AS_FOLDED},
        **{name: field(batch["owner"], name) for name in _OWNER},
        "log_start_offset": from_int64s(offsets.log_start),
        "log_end_offset": from_int64s(offsets.log_end),
        "isolation": field(log, "isolation"),
        "log_observed_at": field(log, "observed_at"),
        "raw_lag": from_int64s(raw_lag(offsets.committed, offsets.log_end)),
        "arrival_rate": field(log, "arrival_rate"),
        "assigned": pa.array(is_set(batch["owner"])),
    }


def _offsets(batch: pa.RecordBatch, *, is_known: Bools) -> Offsets:
    """The commits, and the ends of the log where they are of the same topic."""
    is_comparable = is_known & ~_is_of_another_topic(batch)
    start, end = (int64s(field(batch["log"], name)) for name in ("log_start_offset", "log_end_offset"))
    before = int64s(field(batch["old"], "log_start_offset"))
    # Log starts are asked for after the commits. In between, Kafka Streams commits and has what it has read deleted.
    before = np.where(before == UNKNOWN, start, np.minimum(before, start))
    return Offsets(
        committed=int64s(batch["committed_offset"]),
        log_start=np.where(is_comparable, start, UNKNOWN),
        log_start_before=np.where(is_comparable, before, UNKNOWN),
        log_end=np.where(is_comparable, end, UNKNOWN),
    )


def _within_log(batch: pa.RecordBatch, offsets: Offsets) -> Offsets:
    """The offsets without log ends that were asked for after a commit and are below it.

    The log was cut, or the offset is a mistake: what the group reads next depends on its auto.offset.reset. An old log
    end proves nothing, and neither does a last stable offset: a reader of uncommitted records passes it.
    """
    log = batch["log"]
    is_end = bools(pc.equal(field(log, "isolation"), "read_uncommitted")) & ~is_set(field(log, "error"))
    beyond = raw_lag(offsets.committed, offsets.log_end)
    is_beyond = is_end & (beyond < 0) & (beyond != UNKNOWN)
    return offsets._replace(log_end=np.where(is_beyond | _is_of_cut_log(batch), UNKNOWN, offsets.log_end))


def _is_of_cut_log(batch: pa.RecordBatch) -> Bools:
    """Where a consumer made the commit, and the log was cut below it since: other records have these offsets now.

    No consumer commits beyond the log end, and a commit with a leader epoch is a consumer's: by the epoch the next one
    finds out that the log was cut.
    """
    old = batch["old"]
    # Both have the same causes to be unknown, but for this one.
    was_beyond = is_set(field(old, "raw_lag")) & ~is_set(field(old, "lag"))
    # A commit that is read again is no other one. One that a coordinator has reported has the position before it.
    is_same = bools(pc.equal(batch["commit_position"], field(old, "commit_position"))) & bools(
        pc.equal(batch["committed_offset"], field(old, "committed_offset"))
    )
    is_of_cut_log: Bools = (
        was_beyond & is_set(batch["leader_epoch"]) & (is_same | ~bools(batch["has_new_commit"]))
    )
    return is_of_cut_log


def _has_lag_when_seen(old: pa.StructArray, window: CommitWindow) -> Bools:
    """Windows of a version that kept the lag of the batch that read a commit, and had no `lag_at_commit`.

    Where this version knows no lag at the newest commit the window has none either, unless the row is provisional.
    """
    is_unmeasured = is_set(field(old, "lag")) & ~is_set(field(old, "lag_at_commit"))
    is_in_window = entry(window.lag, window.count - 1) != UNKNOWN
    is_raw: Bools = is_unmeasured & is_in_window & ~bools(field(old, "provisional"))
    return is_raw


def _lag_at_commit(
    batch: pa.RecordBatch,
    ring: Samples,
    offsets: Offsets,
    *,
    records: Int64s,
    is_apart: Bools,
    is_provisional: Bools,
    is_upgraded: Bools,
    most_gap_ms: int,
) -> Int64s:
    """Lag when the newest commit was made, records, at most `records`; once known it stays as long as that commit.

    UNKNOWN in a provisional row, whose commit may not be the newest. A commit that is read again, or is the first one
    in another topic of the name, is measured like a new one: the samples are of the topic that is there.
    """
    old, commit_ms = batch["old"], millis(batch["commit_timestamp"])
    # A commit whose time became unknown may have been repeated, so it may not be the newest one any more.
    is_undated = (commit_ms == UNKNOWN) & is_set(field(old, "commit_timestamp"))
    stands = ~(bools(batch["has_new_commit"]) | is_apart | is_undated)
    kept = np.where(stands, int64s(field(old, "lag_at_commit")), UNKNOWN)
    may_be_told = ~stands | is_upgraded | _is_tried_again(old, commit_ms)
    rows = np.flatnonzero((records > 0) & (kept == UNKNOWN) & ~is_provisional & may_be_told)
    measured = np.where(records == UNKNOWN, UNKNOWN, np.minimum(kept, records))
    measured[rows] = lag_at_commit(
        rows_of(ring, rows),
        committed=offsets.committed[rows],
        commit_ms=commit_ms[rows],
        log_start=offsets.log_start[rows],
        log_end=offsets.log_end[rows],
        readable=int64s(field(batch["log"], "readable_offset"))[rows],
        last_stable=int64s(field(batch["log"], "last_stable_offset"))[rows],
        most_gap_ms=most_gap_ms,
    )
    measured[records == 0] = 0
    # Nothing tells whether the log was cut, or its end is an old one.
    measured[is_provisional | (raw_lag(offsets.committed, offsets.log_end) < 0)] = UNKNOWN
    return measured


def _is_tried_again(old: pa.StructArray, commit_ms: Int64s) -> Bools:
    """Where the batch before could not tell the lag at a commit that stands, and this one may.

    The log end had not been answered, the lag was unknown, or the row was provisional. A commit that was ahead of that
    batch is not tried: in time there will be samples around it, of another time than that of the commit.
    """
    updated_ms = millis(field(old, "updated_at"))
    had_no_end = (millis(field(old, "log_observed_at")) < updated_ms) | ~is_set(field(old, "lag"))
    is_tried: Bools = (had_no_end | bools(field(old, "provisional"))) & (
        commit_ms <= updated_ms + CLOCK_ERROR_MS
    )
    return is_tried


def _pace(window: CommitWindow) -> dict[str, pa.Array]:
    """How often commits come, and how fast they advance."""
    pace = commit_pace(window)
    return {
        # Milliseconds are noise, and would be most of what these columns take on the disk.
        "commit_interval_seconds": from_floats(np.round(pace.interval_s, 1)),
        "commit_rate": from_floats(pace.rate),
        "commit_span_seconds": from_floats(np.round(pace.span_s, 1)),
        "least_lag_at_commit": from_int64s(pace.least_lag),
    }


def _trend(
    old: pa.StructArray, columns: Mapping[str, pa.Array], is_apart: Bools, settings: LagSettings
) -> dict[str, pa.Array]:
    """The trend, and the lag and the time that it is held against."""
    names = pa.array(TREND_NAMES)
    traffic = np.fmax(floats(columns["arrival_rate"]), floats(columns["drain_rate"]))
    trend = trend_of(
        Trend(
            code=pc.fill_null(pc.index_in(field(old, "trend"), value_set=names), NO_TREND).to_numpy(),
            lag=int64s(field(old, "trend_lag")),
            at_ms=millis(field(old, "trend_at")),
        ),
        LagNow(
            lag=int64s(columns["lag"]),
            traffic=traffic,
            is_comparable=~(is_apart | bools(columns["provisional"])),
            is_fresh=millis(columns["log_observed_at"]) > millis(field(old, "log_observed_at")),
        ),
        now_ms=settings.at_ms,
        pace=TrendPace(least_ms=settings.half_life_ms, most_ms=_REFERENCE_HALF_LIVES * settings.half_life_ms),
        allowed_lag=settings.allowed_lag,
    )
    return {
        "trend": names.take(pa.array(trend.code, mask=trend.code == NO_TREND)),
        "trend_lag": from_int64s(trend.lag),
        "trend_at": from_millis(trend.at_ms),
    }


def _drained(batch: pa.RecordBatch, is_apart: Bools, settings: LagSettings) -> Floats:
    """Records/s that the groups commit, less what says nothing of their speed."""
    old = batch["old"]
    is_silent = is_apart | bools(field(old, "provisional")) | _is_by_another(batch)
    committed_since = difference(int64s(batch["committed_offset"]), int64s(field(old, "committed_offset")))
    elapsed_ms = difference(np.full(batch.num_rows, settings.at_ms), millis(field(old, "updated_at")))
    return drain_rate(
        floats(field(old, "drain_rate")),
        np.where(is_silent | (elapsed_ms < _LEAST_ELAPSED_MS), UNKNOWN, committed_since),
        elapsed_ms,
        settings.half_life_ms,
    )


def _has_skipped(batch: pa.RecordBatch, start: Int64s, kept_s: Floats) -> Bools:
    """Where nobody has read the records between a new commit and the one before it: Kafka had deleted them.

    Where nothing is deleted by age, the group itself may have had deleted what it had read, between two batches.
    """
    old = batch["old"]
    committed, start_then = int64s(field(old, "committed_offset")), int64s(field(old, "log_start_offset"))
    overtaken_by = np.where(np.isfinite(kept_s), start, start_then)
    skipped: Bools = bools(batch["has_new_commit"]) & (committed != UNKNOWN) & (committed < overtaken_by)
    return skipped


def _is_by_another(batch: pa.RecordBatch) -> Bools:
    """Where a new commit may be an operator's, who has reset the offset after all members had left.

    It is, if it is the first one after the record that the group is empty: later ones may be those of a consumer that
    calls `assign()`. If the owner is new, there may have been one before.
    """
    owner, before = field(batch["owner"], "member_id"), field(batch["old"], "member_id")
    is_new_owner = is_set(owner) & ~bools(pc.equal(before, owner))
    left, stood = batch["left_position"], field(batch["old"], "commit_position")
    is_after = bools(pc.greater(batch["commit_position"], left)) & ~bools(pc.greater(stood, left))
    is_by_another: Bools = bools(batch["has_new_commit"]) & (is_new_owner | is_after)
    return is_by_another


def _is_of_another_topic(batch: pa.RecordBatch) -> Bools:
    """Where the commit was made in another topic of that name than the one whose log offsets are known.

    A commit without an id that is new is one of the topic that the row was about, until the next batch: it may have
    been made just before the topic was deleted.
    """
    ids = pc.coalesce(batch["commit_topic_id"], field(batch["old"], "commit_topic_id"))
    is_other = is_set(batch["committed_offset"]) & differ(ids, field(batch["log"], "topic_id"))
    return is_other & ~_is_renewed(batch)


def _is_renewed(batch: pa.RecordBatch) -> Bools:
    """Where a coordinator returns the offset that was stored for another topic of that name: it is one of this topic.

    The brokers delete commits of a topic with the topic, but perhaps a moment later. So the answer counts once an
    earlier batch has observed this topic: a second sample follows its first.
    """
    is_repeated: Bools = bools(batch["is_repeated"])
    if not is_repeated.any():
        return is_repeated
    stored, answered = field(batch["old"], "commit_topic_id"), field(batch["log"], "answered_topic_id")
    counts = pc.fill_null(pc.list_value_length(field(batch["log"], "samples")), 0)
    is_known: Bools = bools(pc.greater(counts, 1))
    return is_repeated & is_known & differ(stored, answered)


def _commit_topic_id(batch: pa.RecordBatch) -> pa.Array:
    """The topic that the commit was made in, or, when the record does not say, the one that was there after it.

    Log offsets are asked when it is settled which commits are read. So a commit is of none of the topics that take
    this one's place later.
    """
    after = field(batch["log"], "answered_topic_id")
    ids = pc.if_else(pa.array(_is_renewed(batch)), after, pc.coalesce(batch["commit_topic_id"], after))
    return pc.if_else(pa.array(is_set(batch["committed_offset"])), ids, pa.scalar(None, pa.string()))


def _is_provisional(offsets_partition: Int64s, behind: tuple[int, ...]) -> Bools:
    is_provisional: Bools = np.isin(offsets_partition, behind)
    if behind:
        is_provisional |= offsets_partition == UNKNOWN
    return is_provisional
