"""The driver's life: entry, job, query, and the batch that joins all steps.

Imports every other package but `operate`. Start with `job`, or for one batch with `batch.steps`; `driver` is what
lasts from batch to batch, `readiness` says which groups can be trusted.
"""
