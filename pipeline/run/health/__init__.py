"""What the driver reports: with its heartbeats, and, if `health.port` is set, to whoever asks.

Imports `tables` and `exposition`. Start with `monitor`, which the other parts of the driver tell what they do; `port`
is the server, `text` its metrics.
"""
