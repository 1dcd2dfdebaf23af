"""The demo: the real stream on an embedded broker, with consumers that fall behind unevenly.

Imports everything that it shows. Start with `run`, then `scenario`; `processes` has the producer and the consumers,
`views` the display of a running demo, `report` its results. No other package starts consumer groups or draws on a
terminal.
"""
