"""Deciding about a group: facts in, decision out.

Imports `assignor` and `lag`, without Spark, network or clock; `step` alone meets Spark, and brings rows in and out.
Start with `facts` and `decide`; `eligibility`, `guards` and `frozen` keep plans back, `outcome` says what became of
one, `memory` is what the next decisions know of it.
"""
