"""Input of a batch: present log offsets, and records of Kafka topics.

Imports sibling modules of `kafka`, never `cluster`. Start with `log_offsets`; `records` reads the offsets topic
and the control messages.
"""
