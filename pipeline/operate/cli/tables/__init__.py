"""Subcommands that read the tables: `lag`, `groups`, `recommendations`, `history`, `rebalances`, `quarantine`.

Imports `tables.reading` and no Spark. Start with `lag`; rows and columns are those of `operate.listings`.
"""
