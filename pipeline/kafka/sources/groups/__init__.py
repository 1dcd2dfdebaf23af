"""Groups as their coordinators describe them, requested in each batch if the offsets topic cannot be read.

Imports the Kafka client of its process. Start with `ask`, the requests of one task; `listing` lists the groups, and
`settings` has the shares of tasks.
"""
