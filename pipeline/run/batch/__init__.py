"""The steps of one batch, and the only place that joins them.

Imports all steps. Start with `steps.run`, which takes a batch through them; the other modules hold these steps, each
next to its result, in this order: `opening` (what was chosen and read), `intake` (`Settled`, on which all later steps
depend), `confirmation` (with `asked`), `topics`, `groups`, `control_messages`, `quarantine`, `lag`, the package
`plans`, `upkeep`. `in_tasks` folds tables in Spark's tasks; `clock` compares this host's clock with stored times.
"""
