"""The resolved jars are enough for a Spark session of its own to read Kafka and write Delta."""

import json
import os
import subprocess
import sys
from pathlib import Path

from pipeline.artifacts import resolve_for_spark
from pipeline.embedded import EmbeddedBroker
from pipeline.session import PACKAGES
from tests.support.inject import commit_record, inject

# A process of its own: the class path of a Java process cannot change, and other tests have theirs.
PROGRAM = """
import json, sys
from pipeline.session import build_session
bootstrap, topic, table, *jars = json.loads(sys.argv[1])
spark = build_session({"spark.master": "local[1]"}, jars=tuple(jars))
records = (
    spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    .option("assign", json.dumps({topic: [0, 1, 2, 3]})).load()
)
mine = records.where("instr(cast(key as string), 'spark-jars') > 0").selectExpr("partition", "offset", "key")
mine.write.format("delta").save(table)
spark.sql(f"merge into delta.`{table}` t using delta.`{table}` s on t.offset = s.offset when matched then delete")
mine.write.format("delta").mode("overwrite").option("txnAppId", "a").option("txnVersion", "1").save(table)
print(spark.read.format("delta").load(table).count())
spark.stop()
"""


def test_session_reads_the_offsets_topic_and_writes_delta(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    jars = resolve_for_spark(PACKAGES)
    inject(forged_broker.bootstrap_servers, [commit_record("spark-jars", "t", p, 1) for p in range(3)])
    arguments = json.dumps(
        [forged_broker.bootstrap_servers, "__consumer_offsets", str(tmp_path / "table"), *map(str, jars)]
    )

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

    assert names == {
        "commons-pool2",
        "delta-spark_4.0_2.13",
        "delta-storage",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    }
