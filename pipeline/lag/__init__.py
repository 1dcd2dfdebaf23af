"""Lag of a partition in records and in seconds, rates, status: rules on arrays, and the step that applies them.

Imports `assignor.model` and Arrow; `step` alone meets Spark and the tables. Start with `lag` and `age`, then
`status`; `samples` and `commit_window` are the history that they judge by. Which columns a row has stands in
`tables.schemas`; `columns` only turns Arrow into arrays.
"""
