"""Display of the running demo: one screen, redrawn in place, or lines if there is no terminal.

Imports `snapshot` and `moves`. Start with `live`; `lines` is the view without a terminal.
"""
