"""Log start and log end of every wanted partition, asked at every trigger by Spark's tasks.

Imports the Kafka client of its worker. Start with `source`; `ask` is what a task does (with `kafka.list_offsets`),
`topics_gone` asks again by name.
"""
