"""A real Kafka on loopback with one or several nodes, each a Java process.

Imports `local`. Start with `broker` for one node and `cluster` for several; `node` is the process of either.
"""
