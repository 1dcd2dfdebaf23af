"""`lagwise control tail`: the control topic as consumers see it.

Imports the Kafka client, no Spark. Start with `tail`; `entry` shows one record.
"""
