"""Listings of the commands and the page: rows of the tables, their order and their columns.

Imports `tables.reading` and `operate.output`, no Spark. Start with `partitions`, which is `lagwise lag`; `old_offsets`
marks log end offsets that no broker has reported for a while.
"""
