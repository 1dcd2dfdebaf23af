"""Everything that is asked of the brokers; positions say how far their logs were read.

Imports `config`. Start with `sources`, which batches read from; `list_offsets` asks leaders where logs start and end,
`cluster` is what must be there before the stream starts, `errors` says in words why a call failed, `tokens` calls
the user's token function, `positions` is pure.
"""
