"""Bytes of the offsets topic, acks and orders to rows; what cannot be read goes to quarantine.

Imports `kafka` and `tables.schemas`. Start with `step`; `records` reads and decodes in the same worker,
`offset_columns` decodes a batch of commits with a few array operations.
"""
