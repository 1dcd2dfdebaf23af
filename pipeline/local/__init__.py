"""Programs and files on this machine besides Spark: jars, Java, an embedded Kafka, a watchdog.

Imports `errors` only. Start with `jars`; `class_data` shortens starts; `spark_conf` reads settings of spark-submit;
`embedded` is the broker of tests, demo and `lagwise broker`.
"""
