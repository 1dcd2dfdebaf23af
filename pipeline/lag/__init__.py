"""Lag of a partition in records and in seconds, rates, status: rules on arrays, and the step that applies them.

Imports `assignor.model` and Arrow; `step` alone meets the columns of tables. Start with `lags`, which applies `lag`,
`age`, `status` and `history_turn` to columns, and `logs`; `samples` and `commits` are the history that they
use. `tables.schemas` defines the columns of a row; `columns` only turns Arrow into arrays.

Example: the log end was 100 at second 0 and 400 at second 30; the group has committed 250. It lags by 150 records.
Offset 250 was written at second 15, so at second 30 the next record has waited for 15 seconds.

    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from pipeline.lag import samples
    >>> from pipeline.lag.age import lag_age
    >>> from pipeline.lag.lag import lag
    >>> ring = samples.from_arrow(pa.nulls(1, samples.SAMPLES_TYPE))
    >>> committed, log_start = np.array([250]), np.array([0])
    >>> for at_ms, log_end in ((0, 100), (30_000, 400)):
    ...     ring = samples.append(ring, np.array([at_ms]), np.array([log_end]))
    >>> records = lag(committed, log_start, np.array([400]))
    >>> age = lag_age(
    ...     ring, committed=committed, log_start=log_start, lag=records, now_ms=30_000, most_gap_ms=150_000
    ... )
    >>> records.tolist(), age.seconds.tolist(), age.is_lower_bound.tolist()
    ([150], [15.0], [False])
"""
