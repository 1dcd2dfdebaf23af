"""Subcommands by which operators give orders: `pause`, `resume`, `trigger`, `pin`, `unpin`, `approve`, `orders`.

Imports the Kafka client, no Spark. Start with `commands`, and with `approve`, which reads the tables, too; `change`
changes the orders of a group, `topic` reads and writes them. `approval` and `standing` are what the page orders by.
"""
