"""The sticky family: the most even counts there are, and among them the fewest moves.

Imports `model`. Start with `strategy`; `equal` is for members with one subscription, `unequal` for all others, and
`constrained` and `cooperative` are the same targets under other rules of handing over.
"""
