"""Effects of plans: the members concerned, the verdict, the price of a move, and the way back.

`witnesses` samples members at their commits, `losses` measures the ground that they lose, `judge` gives the verdict,
`waiting` holds other plans back until then, `price` measures how slowly members read partitions that are new to them,
and `way_back` takes a plan back. Imports `problem`, and of `planning` guards, progress, record, state and values.
"""
