"""Run: what Spark's tasks do for a batch, apart from reading it (`source.reading`): fold a range of a table, decide.

Only here, and in what these modules import, are rows folded, measured and decided about; the driver names the classes,
pickles them, and commits what comes back (a contract in `pyproject.toml`). Start with `folding`.
"""
