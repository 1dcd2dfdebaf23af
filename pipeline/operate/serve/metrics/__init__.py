"""Metrics for Prometheus: the tables under the names of kafka-lag-exporter, kafka_exporter and lagwise itself.

Figures are those of `serve.views`. Start with `scrape`, which joins the others; `partitions`, `groups` and `plans` make
samples of what was read, `text` writes samples.
"""
