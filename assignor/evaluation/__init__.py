"""Judging an assignment: is it valid, are its counts as even as possible, how long does it take to drain.

Imports `model` only. It knows no strategy, so that the judge shares no code with what it judges. Start with
`validity`, which every assignment has to pass; figures are in `drain`, worked examples in `balance` and `drain.bound`.
"""
