"""The most even assignment for members with different subscriptions, by augmenting paths and cheapest flow.

Imports `model`. Start with `solver`: `blocks` finds how many partitions each member has, `moves` the fewest hand-
overs to it, and `flow` the paths that both go along.
"""
