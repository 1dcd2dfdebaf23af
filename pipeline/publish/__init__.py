"""The outbox: sends what a batch wrote into `plan_state` to the compacted control topic.

Imports `planning` and `kafka.errors`. Start with `outbox`; `read_back` selects what to send.
"""
