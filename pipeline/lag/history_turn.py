"""Lag: whose turn it is to have a row in the history."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assignor.model.arrays import Int64s
from pipeline.lag.columns import field, int64s, millis
from pipeline.lag.lag import UNKNOWN

_SAYS = ("committed_offset", "log_end_offset", "status", "member_id")
"""A row says something new when one of these does."""
# Knuth's multiplier for hashing with 64 bits: odd, and near 2^64 divided by the golden ratio.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPace:
    """How often a partition has a row in the history."""

    interval_ms: int
    """At most, while it changes."""
    max_gap_ms: int
    """At least, while it does not."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistoryTurn:
    """Of each partition, its newest row in the history, this one included."""

    at_ms: Int64s
    """When; now where it is due."""
    says: Int64s
    """Hash of what it says."""


def history_turn(
    old: pa.StructArray, columns: Mapping[str, pa.Array], pace: HistoryPace, *, now_ms: int
) -> HistoryTurn:
    """Who is due: those without a row, those whose newest is old, and those that have changed and had time to.

    Args:
        old: Rows before, of `schemas.PARTITION_LAG`; null where there was none.
        columns: Of the same partitions as they are now.
        pace: How often.
        now_ms: Clock of the batch.
    """
    last_ms, said = millis(field(old, "history_at")), int64s(field(old, "history_hash"))
    says = _hashes([columns[name] for name in _SAYS])
    elapsed_ms = now_ms - last_ms
    is_due = (
        (last_ms == UNKNOWN)
        | (elapsed_ms >= pace.max_gap_ms)
        | ((elapsed_ms >= pace.interval_ms) & (says != said))
    )
    return HistoryTurn(at_ms=np.where(is_due, now_ms, last_ms), says=np.where(is_due, says, said))


def _hashes(columns: list[pa.Array]) -> Int64s:
    """One number per row, the same on every machine."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        values = _text_hashes(column) if pa.types.is_string(column.type) else int64s(column).view(np.uint64)
        mixed = (mixed ^ values) * _MULTIPLIER
        # A product carries differences upwards only.
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


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
