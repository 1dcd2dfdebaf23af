"""Records of Kafka topics, span by span, and the ends of their logs.

Imports `kafka.positions` and the Kafka client. Start with `ends`, requested before each batch; `consumer` reads a span
in a worker.
"""
