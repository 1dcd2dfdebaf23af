"""The stored state and one batch's decoded rows, brought together; the last write by position wins.

Imports `tables.schemas`. Start with `step`; `control_messages` has acks and orders, and where partitions are after
hand-overs.
"""
