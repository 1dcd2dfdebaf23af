"""Judging an assignment: is it valid, are its counts as even as they can be, how long does it drain.

Imports `model` only. It knows no strategy, so that the judge shares no code with what it judges. Start with
`validity`, which every assignment has to pass; figures are in `drain`.
"""
