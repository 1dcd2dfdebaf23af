"""What one batch does; the only place that joins the steps.

Imports all steps. Start with `steps.run`, which takes a batch through them; the other modules hold these steps, each
beside the value that it makes, in this order: `opening` (what was chosen and read), `intake` (`Settled`, by which all
that follows is made and written), `confirmation`, `topics`, `groups`, `control_messages`, `quarantine`, `lag`, `plans`
with `decisions`. Maintenance stands in `steps` itself, and `in_tasks` is how tables are folded by Spark's tasks.
"""
