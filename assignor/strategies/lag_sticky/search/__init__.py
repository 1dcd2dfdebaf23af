"""The search of `lag-sticky`: packing to a deadline, local search, then exact search.

Imports `problem` and `evaluation.drain`. Start with `search`; `packing` packs evicted partitions to one deadline,
`local_search` relieves the slowest members by the moves of `neighbourhood`, `exact` tries everything that could be
better in a small group or in parts of a larger one.
"""
