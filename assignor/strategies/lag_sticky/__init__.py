"""Strategy `lag-sticky`: the assignment that drains a group soonest with the fewest moves.

Imports `model` and `evaluation.drain`. Start with `strategy`, which says what is minimised and how; `solve` is one
round from the present owners, `search` looks for the best plan within a budget of moves.
"""
