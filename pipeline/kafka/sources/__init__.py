"""What a batch reads: the log offsets of the moment, and the records of Kafka topics.

Imports sibling modules of `kafka`, never `cluster`. Start with `log_offsets`; `records` reads the offsets topic
and the control messages.
"""
