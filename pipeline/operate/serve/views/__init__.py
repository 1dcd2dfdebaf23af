"""The common data of page, JSON API and metrics, made from one version of the tables.

The figures are those of `operate.listings`, and so of the commands. Imports no HTTP. Start with `facts`, which reads;
`crew` has the members of all groups, `fleet` one row per group, `group` one of them in full.
"""
