"""Fold: topics that were known, and that the brokers no longer list."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.row_keys import PARTITION_KEY, codes


def missing_topics(stored: pa.Table, observed: pa.Table) -> list[str]:
    """Return topics with a stored, undeleted partition that was not observed.

    Args:
        stored: `deleted_at` and the key of `schemas.TOPIC_OFFSETS`.
        observed: The key of decoded rows of kind 'log_offset'.
    """
    alive = stored.filter(pc.is_null(stored["deleted_at"]))
    known, seen = codes(PARTITION_KEY, alive, observed)
    missing = alive.filter(pa.array(~np.isin(known, seen)))
    return sorted(missing["topic"].unique().to_pylist())
