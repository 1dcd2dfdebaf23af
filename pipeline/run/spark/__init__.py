"""The Spark session of the job: its settings, its Pythons, its executors, and its catalog."""
