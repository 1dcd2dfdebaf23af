"""The driver that owns the tables: how it takes them, who waits for them, and whether it is alive.

Start with `ownership`; `heartbeat` writes and reads its heartbeat, and `health` combines it with the tables.
"""
