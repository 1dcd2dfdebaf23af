"""Array types of the assignor core, and the stable sort that it uses everywhere.

Integers that Kafka carries as int32 (partition numbers, member indices, generations) stay int32; everything
that is summed or multiplied (offsets, lag, partition indices) is int64.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bools: TypeAlias = npt.NDArray[np.bool_]
Int8s: TypeAlias = npt.NDArray[np.int8]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_FITS_UINT16 = 1 << 16


def stable_order(keys: Int32s | Int64s, *, below: int) -> Int64s:
    """Positions that sort `keys`, 0 <= key < below, equal keys in their order.

    Complexity: O(n) for `below` up to 65,536, where numpy sorts by radix; otherwise O(n log n).
    """
    if below <= _FITS_UINT16:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")
