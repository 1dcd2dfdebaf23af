"""The driver's life: entry, job, query, and the batch that joins all steps.

Imports every other package but `operate`. Start with `job`, or for one batch with `batch.steps`; `driver` holds
what lasts from batch to batch: constant `services`, `progress` in reading, `replay` context, and the memory of
planning. `assembly` builds it, `readiness` determines which groups can be trusted.
"""
