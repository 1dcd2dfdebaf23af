"""Bytes to types and back: records of the offsets topic, the consumer protocol, the control record.

Every `decode_*` function raises `DecodeError` on bytes it cannot read and nothing else, whatever the
bytes are: members and producers may write anything, so nothing here trusts a length, a count or a version.
"""
