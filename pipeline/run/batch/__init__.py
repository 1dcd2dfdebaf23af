"""What one batch does; the only place that joins the steps.

Imports all steps. Start with `steps.STEPS`, the list that a batch goes through; `intake` chooses what it reads,
`plans` decides and publishes.
"""
