"""What one batch does; the only place that joins the steps.

Imports all steps. Start with `steps.STEPS`, the list that a batch goes through; the other modules hold these steps, in
this order: `opening` with `intake`, `groups`, `topics`, `control_messages`, `lag`, `plans` with `decisions`. Quarantine
and maintenance stand in `steps` itself, and `writes` is how all of them write.
"""
