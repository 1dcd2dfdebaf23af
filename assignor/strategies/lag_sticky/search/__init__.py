"""The search of `lag-sticky`: packing to a deadline, then local search.

Imports `problem` and `evaluation.drain`. Start with `search`; `packing` packs evicted partitions to one deadline,
`local_search` relieves the slowest members by the moves of `neighbourhood`.
"""
