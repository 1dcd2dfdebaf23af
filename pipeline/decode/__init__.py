"""Bytes of the offsets topic, acks and orders to rows; what cannot be read goes to quarantine.

Imports `kafka` and `tables.schemas`. Start with `step`; `records` reads and decodes in the same place; `decoded` is
what comes of it, and `offset_columns` decodes a batch of commits with a few array operations.

Example: a commit of offset 7 by group g in partition 0 of topic t, and the same key without a value, which deletes it.

    >>> import pyarrow as pa
    >>> from pipeline.decode.offset_columns import Kind, decode_offset_commits
    >>> key = bytes.fromhex("0001 0001 67 0001 74 00000000")
    >>> value = bytes.fromhex("0003 0000000000000007 ffffffff 0000 0000018bcfe56800")
    >>> found = decode_offset_commits(pa.array([key, key]), pa.array([value, None], pa.binary()))
    >>> [Kind(code).name for code in found.kind.to_pylist()], found.committed_offset.to_pylist()
    (['COMMIT', 'TOMBSTONE'], [7, None])
"""
