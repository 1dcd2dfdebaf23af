"""What consumers import to follow the control topic; each client library stands behind an extra of its own.

Imports all of this package but `cases`. Start with the package of your client, `confluent`, `kafka_python` or
`aiokafka`; `control` knows the newest plan of a group, `follower` and `plugin` hold what no client library is
needed for.
"""
