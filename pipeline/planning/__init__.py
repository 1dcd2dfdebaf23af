"""Deciding about a group: facts in, decision out.

Imports `assignor` and `lag`, without Spark, network or clock; `step` alone meets Spark, and brings rows in and out.
Start with `facts` and `decide`; `eligibility`, `guards` and `frozen` hold plans back, `progress` and `outcome` follow
a published one, `memory` is what the next decisions know of it, and `reasons` has every reason in words.
"""
