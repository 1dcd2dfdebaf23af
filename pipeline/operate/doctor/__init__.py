"""Diagnosis: why a group is not listed, not planned, not followed or behind, and the faults of the job.

Findings come from the tables alone; only `brokers` also asks Kafka. Imports no Spark. Start with `diagnosis`.
"""
