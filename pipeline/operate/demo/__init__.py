"""The demo: the real stream on an embedded broker, with consumers that fall behind unevenly.

Imports everything it shows. Start with `run`, then `scenario`; `processes` are the producer and the consumers,
`views` what is shown meanwhile, `report` what is left behind. Nothing else starts a consumer group or renders to a
terminal.
"""
