"""Deciding about a group: facts in, decision out.

Imports `assignor` and `lag`, without Spark, network or clock; `step` alone meets Spark, and `rows` brings rows in and
out. Start with `decide`, which reads from top to bottom: `eligibility`, the `problem`, the `life` of the newest plan
and its `effect`, what is wanted, `guards` and `verdicts`, and the `values` that are sent. `state` is what a decision
remembers, `memory` keeps it from batch to batch, and `reasons` has every reason in words. A decision asks what commits
show (`asking`, `problem.evidence`), and `step` answers that for hundreds of groups at once.
"""
