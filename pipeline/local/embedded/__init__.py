"""A real Kafka on loopback, of one node or of several, each a Java process.

Imports `local`. Start with `broker` for one node and `cluster` for several; `node` is the process of either.
"""
