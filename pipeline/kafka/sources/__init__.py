"""What a batch reads: ticks with the log offsets of the moment, and the records of Kafka topics.

Imports the modules of `kafka` beside it, never `cluster`. Start with `ticks`; `records` reads the offsets topic and
the control messages.
"""
