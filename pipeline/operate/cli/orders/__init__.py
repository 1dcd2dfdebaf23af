"""Subcommands by which operators give orders: `pause`, `resume`, `trigger`, `pin`, `unpin`, `orders`.

Imports the Kafka client, no Spark. Start with `commands`; `change` changes the orders of a group, `topic` reads and
writes them.
"""
