"""The processes of the demo: a producer, and one for each group of consumers.

Imports the scenario and the Kafka client. Start with `launcher`, which starts and ends them.
"""
