"""Lag: what is known of each partition's log, from what was known and what was answered now."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools, Int64s
from pipeline.arrow_columns import is_set
from pipeline.lag import samples
from pipeline.lag.bounded_lists import emptied
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
from pipeline.lag.lag import UNKNOWN, difference
from pipeline.lag.rates import arrival_rate
from pipeline.lag.readable import readable_offset
from pipeline.lag.settings import TopicSettings

_REPLICATION = ("leader_broker", "preferred_leader", "replicas", "in_sync_replicas")
_NOT_LISTED = "missing from the brokers' list, although the brokers still know it by name"


def measured_logs(batch: pa.RecordBatch, settings: TopicSettings) -> dict[str, pa.Array]:
    """Columns of `schemas.TOPIC_OFFSETS`, but for the cluster.

    Args:
        batch: `fold.topic_offsets.fold_topic_offsets`.
        settings: What they depend on in addition.
    """
    old, new = batch["old"], batch["new"]
    known = samples.from_arrow(field(old, "samples"))
    old_start, old_end = int64s(field(old, "log_start_offset")), int64s(field(old, "log_end_offset"))
    old_at = millis(field(old, "observed_at"))
    end, observed_ms = int64s(field(new, "log_end_offset")), int64s(field(new, "observed_at_ms"))
    answered = end != UNKNOWN
    # A topic that was deleted and made again has another history under the same name.
    is_reborn = answered & (is_set(field(old, "deleted_at")) | _has_other_id(old, new))
    fresh = samples.append(emptied(known, is_reborn), np.where(answered, observed_ms, UNKNOWN), end)
    previous = np.where(is_reborn, np.nan, floats(field(old, "arrival_rate")))
    grown = np.where(is_reborn, UNKNOWN, difference(end, old_end))
    rate = arrival_rate(previous, grown, difference(observed_ms, old_at), settings.half_life_ms)
    is_gone, unanswered = _absent(batch, settings)
    # Until its new log is known a topic stays deleted: the old offsets under the old name would lie.
    was_deleted_ms = millis(field(old, "deleted_at"))
    deleted_ms = np.where(is_gone, known_or(was_deleted_ms, settings.at_ms), was_deleted_ms)
    deleted_ms = np.where(answered, UNKNOWN, deleted_ms)
    return {
        "topic": batch["topic"],
        "partition": batch["partition"],
        "log_start_offset": from_int64s(
            np.where(answered, int64s(field(new, "log_start_offset")), old_start)
        ),
        "log_end_offset": from_int64s(np.where(answered, end, old_end)),
        # An old one would hide what has become readable since.
        "last_stable_offset": field(new, "last_stable_offset"),
        "readable_offset": from_int64s(
            np.where(answered, _readable(old, new, is_reborn), int64s(field(old, "readable_offset")))
        ),
        "isolation": pc.if_else(pa.array(answered), field(new, "isolation"), field(old, "isolation")),
        "observed_at": from_millis(np.where(answered, observed_ms, old_at)),
        "arrival_rate": from_floats(np.where(answered, rate, previous)),
        "samples": samples.to_arrow(fresh),
        "error": pc.if_else(pa.array(is_set(new)), field(new, "error"), unanswered),
        "deleted_at": from_millis(deleted_ms),
        "topic_id": _topic_id(old, new, answered, is_reborn),
        "topic_id_at": from_millis(
            np.where(
                answered & is_set(field(new, "topic_id")), observed_ms, millis(field(old, "topic_id_at"))
            )
        ),
        # Where the partition was kept before says nothing about now.
        **{name: field(new, name) for name in _REPLICATION},
    }


def _readable(old: pa.StructArray, new: pa.StructArray, is_reborn: Bools) -> Int64s:
    stable_before = int64s(field(old, "last_stable_offset"))
    return readable_offset(
        int64s(field(new, "last_stable_offset")),
        stable_before=np.where(is_reborn, UNKNOWN, stable_before),
        end_before=int64s(field(old, "log_end_offset")),
    )


def _has_other_id(old: pa.StructArray, new: pa.StructArray) -> Bools:
    """Where both topic ids are known and differ."""
    return differ(field(old, "topic_id"), field(new, "topic_id"))


def _topic_id(old: pa.StructArray, new: pa.StructArray, answered: Bools, is_reborn: Bools) -> pa.Array:
    """Whose offsets are kept: without an id in the answer still the old topic's, unless that was deleted."""
    known, given = field(old, "topic_id"), field(new, "topic_id")
    kept = pc.if_else(pa.array(is_reborn), given, pc.coalesce(given, known))
    return pc.if_else(pa.array(answered), kept, known)


def _absent(batch: pa.RecordBatch, settings: TopicSettings) -> tuple[Bools, pa.Array]:
    """Which partitions are gone for good, and why the others that nobody observed were not."""
    missing = np.flatnonzero(~is_set(batch["new"]))
    was_deleted = is_set(field(batch["old"], "deleted_at"))
    is_gone = np.zeros(batch.num_rows, dtype=bool)
    why: list[str | None] = [None] * batch.num_rows
    index = pa.array(missing)
    keys = zip(
        batch["topic"].take(index).to_pylist(), batch["partition"].take(index).to_pylist(), strict=True
    )
    for row, (topic, partition) in zip(missing.tolist(), keys, strict=True):
        is_gone[row] = partition >= settings.remaining.get(topic, partition + 1)
        why[row] = settings.unconfirmed.get(topic) or settings.listing_error
        if why[row] is None and not is_gone[row] and not was_deleted[row]:
            why[row] = _NOT_LISTED
    return is_gone, pa.array(why, pa.string())
