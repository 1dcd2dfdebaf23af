"""Merge the stored state with one batch's decoded rows; the last write by position wins.

Imports `tables.schemas`, `row_keys` and Arrow. Start with `commits`; `owners` has the owner of each partition,
`topic_offsets` the state of the logs, `groups` the members, and `control_messages` acks, orders and hand-overs.
"""
