"""The search of `lag-sticky`: packing to a deadline, then local search.

Imports the problem and `evaluation.drain`. Start with `search`; `packing` is one attempt at a deadline,
`local_search` relieves the slowest members move by move.
"""
