"""`lagwise sql`: Spark SQL over the tables, for one statement, a script, or a person at a prompt.

Imports `run.spark.session`, `tables` and `operate.output`. Start with `engine`, which answers one statement; `shell`
and `runner` bring the statements.
"""
