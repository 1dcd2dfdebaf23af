"""What the demo shows while it runs: one screen redrawn in place, or lines where there is no terminal.

Imports `snapshot` and `moves`. Start with `live`; `lines` is the view without a terminal.
"""
