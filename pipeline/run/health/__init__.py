"""The driver's reports: in its heartbeats and, if `health.port` is set, over HTTP.

Imports `tables` and `exposition`. Start with `monitor`, to which the other parts of the driver report; `port` is
the server, `text` its metrics.
"""
