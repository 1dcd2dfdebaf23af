"""Source: the logs of the job and the brokers' log ends as one streaming source of Spark, format `lagwise`.

In the order of a batch: `planner` chooses what it reads (an `offset`), `partitions` deals that out to tasks, `reading`
is what a task does, and `summary` what the driver learns from the rows. `datasource` is the door for Spark.
"""
