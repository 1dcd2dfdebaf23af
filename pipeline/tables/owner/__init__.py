"""The driver that owns the tables: how it comes to them, who waits for them, and whether it lives.

Start with `ownership`; `heartbeat` is its heartbeat, and `health` what that says together with the tables.
"""
