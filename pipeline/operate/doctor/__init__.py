"""Why a group is not listed, not planned, not followed or behind, and what is wrong with the job.

Findings are made of the tables alone; `brokers` asks Kafka, too. Imports no Spark. Start with `diagnosis`.
"""
