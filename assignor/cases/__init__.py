"""JSON cases in, answers and explanations out: `lagwise assign` and `lagwise explain`, tests, what-if runs.

Imports everything but `clients` and `protocol`. Start with `run`; `case.schema.json` describes both forms, and
`examples` has a worked case for each strategy.
"""
