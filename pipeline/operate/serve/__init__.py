"""`lagwise serve`: one process that answers HTTP from the tables; the stream may run elsewhere, or not at all.

Imports `tables.reading`, `config` and `planning`, and neither Spark nor a Kafka client. Start with `app`: `metrics` is
what Prometheus scrapes, `page` what people read, `api` the same as JSON; all three show `views`. `server` runs it.
"""
