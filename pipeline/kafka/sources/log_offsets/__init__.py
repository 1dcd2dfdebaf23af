"""Log start and log end offsets of every wanted partition, requested in each batch.

Imports the Kafka client of its process. Start with `ask` (and `kafka.list_offsets`); `settings` has the shares of
tasks, and `topics_gone` asks for topics by name.
"""
