"""What the page shows, the JSON API answers and metrics count: one value for all, made from one version of the tables.

Figures are those of `operate.listings`, so of the commands. Imports no HTTP. Start with `facts`, which reads; `crew`
has the members of all groups, `fleet` one row per group, `group` one of them in full.
"""
