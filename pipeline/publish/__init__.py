"""The outbox: what a batch wrote into `recommendations`, to the compacted control topic.

Imports `planning` and `kafka.errors`. Start with `outbox`; `read_back` says what is to be sent.
"""
