"""What the commands list and the page shows: which rows of the tables, in which order, under which columns.

Imports `tables.reading` and `operate.output`, no Spark. Start with `partitions`, which is `lagwise lag`; `old_offsets`
marks log ends that no broker has reported for a while.
"""
