"""The records of Kafka topics, span by span, and where their logs end.

Imports `kafka.positions` and the Kafka client. Start with `ends`, asked before each batch; `consumer` reads a span
in a worker.
"""
