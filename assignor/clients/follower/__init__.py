"""The follower as a state machine: it moves partitions within a generation of its group.

Imports `protocol` and `clients.control`; no client, no clock. Start with `state`, then `rules`, whose `advance` is
the only way from one state to the next: `plan` accepts or refuses a plan and selects the partitions that are due,
`tokens` hands them over.
"""
