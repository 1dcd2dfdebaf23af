"""The Delta tables: their columns, who may write them, and what keeps them small.

Imports `config` and `kafka.positions`. Start with `schemas`, then `store`; `owner` fences a second driver,
`reading` needs neither Spark nor a JVM.
"""
