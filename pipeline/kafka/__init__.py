"""Requests to the brokers, and positions: how far their logs were read.

Imports `config`. Start with `sources`, which batches read from; `list_offsets` asks leaders for log start and end
offsets, `cluster` prepares the cluster before the stream starts, `errors` words the cause of a failed call, `tokens`
calls the user's token function, `positions` is pure.
"""
