"""The driver's life: entry, job, query, and the batch that joins all steps.

Imports every other package but `operate`. Start with `job`, or for one batch with `batch.steps`; `driver` is what
lasts from batch to batch: `services`, which stay as they are, `progress` in reading, `replay` context, and the memory
of planning. `assembly` builds it, `readiness` says which groups can be trusted.
"""
