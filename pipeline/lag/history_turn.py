"""Lag: chooses the partitions that get a row in the history.

A partition that keeps up has different offsets in every batch, but no news. A row is news if the status, the owner or
the provisional flag changes, or if the lag is on another step: less than ten seconds behind is one step, and beyond
that a step is a tenth of the age and of the records. Between two rows, every observation of a partition was on the step
of the first row.

A plot of a group combines all rows of a minute. So the partitions of a group get their rows together: one without news
gets a row along with those that have news.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.arrow_columns import bools
from pipeline.lag.columns import field, floats, int64s, millis
from pipeline.lag.lag import UNKNOWN
from pipeline.lag.settings import HistoryPace

STEADY_S: Final = 10.0
"""Who is less far behind keeps up: commits every five seconds and a batch between them make that much difference."""
_STEP: Final = 1.1
"""Lags whose ratio is less may be on one step."""
# Knuth's multiplier for hashing with 64 bits: odd, and near 2^64 divided by the golden ratio.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistoryTurn:
    """The newest row of each partition in the history, this one included."""

    at_ms: Int64s
    """When; now where it is due."""
    says: Int64s
    """Hash of its contents."""


def history_turn(
    old: pa.StructArray, columns: Mapping[str, pa.Array], pace: HistoryPace, *, now_ms: int
) -> HistoryTurn:
    """Return the due partitions: without a row, with an old one, or, an interval after it, of a group with news.

    Args:
        old: Previous rows, of `schemas.PARTITION_LAG`; null if there was none.
        columns: Of the same partitions as they are now.
        pace: Interval of the rows.
        now_ms: Clock of the batch.
    """
    last_ms, said = millis(field(old, "history_at")), int64s(field(old, "history_hash"))
    says = _says(columns)
    elapsed_ms = now_ms - last_ms
    is_new = (last_ms == UNKNOWN) | (elapsed_ms >= pace.max_gap_ms)
    had_time = elapsed_ms >= pace.interval_ms
    is_due = is_new | (
        had_time & _anywhere_in_group(is_new | (had_time & (says != said)), columns["group_id"])
    )
    return HistoryTurn(at_ms=np.where(is_due, now_ms, last_ms), says=np.where(is_due, says, said))


def _anywhere_in_group(is_so: Bools, group_ids: pa.Array) -> Bools:
    """For each row, whether it is so for any row of its group."""
    encoded = group_ids.dictionary_encode()
    group = encoded.indices.to_numpy()
    found: Bools = np.bincount(group, weights=is_so, minlength=len(encoded.dictionary))[group] > 0
    return found


def _says(columns: Mapping[str, pa.Array]) -> Int64s:
    """A number of 32 bits for what each row says, the same on every machine."""
    by_time, by_records = _steps(floats(columns["lag_seconds"]), int64s(columns["lag"]))
    flags = 2 * bools(columns["provisional"]).astype(np.uint64) + bools(columns["lag_seconds_is_lower_bound"])
    texts = (_text_hashes(columns[name]) for name in ("status", "member_id"))
    mixed = np.zeros(len(by_time), np.uint64)
    for values in (*texts, flags, by_time.view(np.uint64), by_records.view(np.uint64)):
        mixed = (mixed ^ values) * _MULTIPLIER
        # A product carries differences upwards only.
        mixed ^= mixed >> np.uint64(29)
    # In each version of the table they take as many bytes as they have.
    says: Int64s = (mixed >> np.uint64(32)).view(np.int64)
    return says


def _steps(age_s: Floats, records: Int64s) -> tuple[Int64s, Int64s]:
    """The steps that a lag is on, by its age and by its records; UNKNOWN where that is not known."""
    is_steady = age_s < STEADY_S
    by_time = np.where(np.isnan(age_s), UNKNOWN, _step(age_s / STEADY_S))
    # Without an age nobody can tell which difference is a small one.
    by_records = np.where(np.isnan(age_s) | (records == UNKNOWN), records, _step(records))
    return by_time, np.where(is_steady, 0, by_records)


def _step(values: Floats | Int64s) -> Int64s:
    """0 for what is less than 1."""
    with np.errstate(invalid="ignore"):
        steps: Int64s = np.floor(np.log(np.maximum(values, 1)) / np.log(_STEP) + 1).astype(np.int64)
    return np.where(values < 1, 0, steps)


def _text_hashes(texts: pa.Array) -> npt.NDArray[np.uint64]:
    encoded = texts.dictionary_encode()
    words = [
        int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        for text in encoded.dictionary.to_pylist()
    ]
    # Null is told from every text by the last one.
    by_code: npt.NDArray[np.uint64] = np.array([*words, 1], np.uint64)
    hashes: npt.NDArray[np.uint64] = by_code[encoded.indices.fill_null(len(words)).to_numpy()]
    return hashes
