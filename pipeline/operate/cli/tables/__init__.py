"""Subcommands that read the tables: `lag`, `groups`, `recommendations`, `history`, `rebalances`, `quarantine`.

Imports `tables.reading` and no Spark. Start with `lag`; `old_offsets` marks log ends that no broker has reported for
a while.
"""
