"""The last steps of a batch: decide about groups, record the decisions, publish what was recorded.

Imports `batch.intake`, `batch.clock`, and the packages of decisions (`planning`, `publish`, `run.tasks`). Start with
`evaluation`, which stores decisions in `plan_state`; `deciding` makes them in Spark's tasks, `history` records them,
`publication` sends the plans, and `pokes` asks the brokers of KIP-848 groups to take them at once.
"""
