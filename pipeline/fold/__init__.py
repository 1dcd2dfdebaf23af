"""The stored state and one batch's decoded rows, brought together; the last write by position wins.

Imports `tables.schemas`. Start with `on_driver`, which folds commits and log offsets of small batches; `step` has Spark
do it for large ones. `groups`, `owners` and `control_messages` (acks, orders, hand-overs) are on the driver always.
"""
