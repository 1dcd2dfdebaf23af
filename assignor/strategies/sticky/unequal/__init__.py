"""The most even assignment for members with different subscriptions, by augmenting paths and min-cost flow.

Imports `model`. Start with `solver`, which has a worked example: `blocks` finds how many partitions each member has,
`moves` the assignment with these counts and the fewest moves, and `flow` the paths that both augment along.
"""
