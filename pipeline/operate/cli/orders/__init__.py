"""Subcommands by which operators give orders: `pause`, `resume`, `trigger`, `pin`, `unpin`, `approve`, `orders`.

Imports the Kafka client, no Spark. Start with `commands`, and with `approve`, which also reads the tables; `change`
changes the orders of a group, `topic` reads and writes them. `approval` and `standing` write orders of the page.
"""
