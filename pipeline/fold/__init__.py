"""The stored state and one batch's decoded rows, brought together; the last write by position wins.

Imports `tables.schemas`, `row_keys` and Arrow. Start with `commits`; `owners` says who has each partition,
`topic_offsets` what is known of the logs, `groups` and `control_messages` (acks, orders, hand-overs) what others say.
"""
