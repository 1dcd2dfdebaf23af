"""Strategy `lag-sticky`: the assignment that drains a group soonest with the fewest moves.

Imports `model` and `evaluation.drain`. Start with `strategy`, which states the objective, the method and a worked
example; `solve` runs one search from the current owners, `search` finds the best solution within a budget of moves.
"""
