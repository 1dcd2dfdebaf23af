"""What runs on this machine in addition to Spark: jars, Java, an embedded Kafka, a watchdog.

Imports `errors` only. Start with `jars`; `class_data` shortens starts; `spark_conf` reads what spark-submit is told;
`embedded` is the broker of tests, demo and `lagwise broker`.
"""
