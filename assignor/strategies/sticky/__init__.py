"""The sticky family: the most even counts possible, and among them the fewest moves.

Imports `model`. Start with `strategy`; `equal`, which has a worked example, is for equal subscriptions, `unequal` for
all others; `constrained` and `cooperative` give the same targets under other rebalance protocols.
"""
