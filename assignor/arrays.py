"""Names for the array types of the assignor core.

Integers that Kafka carries as int32 (partition numbers, member indices, generations) stay int32; everything
that is summed or multiplied (offsets, lag, partition ids) is int64.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bools: TypeAlias = npt.NDArray[np.bool_]
Int8s: TypeAlias = npt.NDArray[np.int8]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
