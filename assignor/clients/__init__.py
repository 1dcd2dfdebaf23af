"""The packages that consumers import to follow the control topic; each client library has its own extra.

Imports all of this package but `cases`. Start with the package of your client, `confluent`, `kafka_python` or
`aiokafka`; `control` has the newest plan of a group; `follower` and `plugin` need no client
library.
"""
