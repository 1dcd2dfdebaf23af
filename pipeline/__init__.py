"""The Spark shell of lagwise: one module per step, in the order in which the data flows.

    source, log_offsets -> decode -> fold -> measure -> store -> plan -> publish

Only `batch` joins the steps. No rule that can be stated without Spark lives here: those are in `assignor`.
"""
