"""Strategy `range`, as in Kafka, with its rack pass.

Imports `model`. Start with `strategy`; `racks` prefers replicas near by.
"""
