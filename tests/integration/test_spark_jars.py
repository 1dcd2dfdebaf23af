"""The resolved jars are enough for a Spark session of its own to write Delta."""

import json
import os
import subprocess
import sys
from pathlib import Path

from pipeline.local.jars import resolve_for_spark
from pipeline.run.session import PACKAGES

# A process of its own: the class path of a Java process cannot change, and other tests have theirs.
PROGRAM = """
import json, sys
from pipeline.run.session import build_session
table, *jars = json.loads(sys.argv[1])
spark = build_session({"spark.master": "local[1]"}, jars=tuple(jars))
rows = spark.range(3)
rows.write.format("delta").save(table)
spark.sql(f"merge into delta.`{table}` t using delta.`{table}` s on t.id = s.id when matched then delete")
rows.write.format("delta").mode("overwrite").option("txnAppId", "a").option("txnVersion", "1").save(table)
print(spark.read.format("delta").load(table).count())
spark.stop()
"""


def test_session_writes_and_merges_delta(tmp_path: Path) -> None:
    arguments = json.dumps([str(tmp_path / "table"), *map(str, resolve_for_spark(PACKAGES))])

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=300,
    )

    assert done.stdout.strip() == "3", done.stderr


def test_jars_that_pyspark_ships_are_not_there_twice() -> None:
    names = {jar.name.rpartition("-")[0] for jar in resolve_for_spark(PACKAGES)}

    assert names == {"delta-spark_4.0_2.13", "delta-storage"}
