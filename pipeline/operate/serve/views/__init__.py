"""What the page shows and the JSON API answers: one value for both, made from one version of the tables.

Figures are those of `operate.listings`, so of the commands, and of `serve.metrics` where the commands have none.
Imports no HTTP. Start with `fleet`, one row per group; `group` is one of them in full.
"""
