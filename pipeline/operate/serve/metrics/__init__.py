"""What Prometheus scrapes: the tables in the names of kafka-lag-exporter, kafka_exporter and lagwise itself.

Imports `tables.reading`. Start with `scrape`, which joins the others; `facts` reads, `partitions`, `groups` and `plans`
make samples of what was read, `text` writes samples.
"""
