"""Log start and log end of every wanted partition, asked in each batch.

Imports the Kafka client of its process. Start with `ask` (with `kafka.list_offsets`), what is asked for together is in
`settings`; `topics_gone` asks again by name.
"""
