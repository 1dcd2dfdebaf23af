"""The resolved jars are enough for a Spark session of its own to write Delta, and their classes are archived."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.local import class_data
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve, resolve_for_spark
from pipeline.run.spark.session import PACKAGES

# A process of its own: the class path of a Java process cannot change, and other tests have theirs.
PROGRAM = """
import json, sys
from pathlib import Path
from pipeline.run.spark.session import build_session
table, *jars = json.loads(sys.argv[1])
spark = build_session({"spark.master": "local[1]"}, jars=tuple(map(Path, jars)))
rows = spark.range(3)
rows.write.format("delta").save(table)
spark.sql(f"merge into delta.`{table}` t using delta.`{table}` s on t.id = s.id when matched then delete")
rows.write.format("delta").mode("overwrite").option("txnAppId", "a").option("txnVersion", "1").save(table)
pid = spark._jvm.java.lang.ProcessHandle.current().pid()
print(spark.read.format("delta").load(table).count(), pid, flush=True)
sys.stdin.read()
spark.stop()
"""


def test_session_writes_and_merges_delta_and_starts_from_the_archive_of_its_classes(tmp_path: Path) -> None:
    jars = resolve_for_spark(PACKAGES)
    arguments = json.dumps([str(tmp_path / "table"), *map(str, jars)])

    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as program:
        assert program.stdout
        rows, pid = program.stdout.readline().split()
        mapped = is_mapped(int(pid), class_data.archive("spark", class_data.spark_class_path(jars)))
        program.communicate(timeout=300)

    assert (rows, program.returncode) == ("3", 0)
    assert mapped


def test_broker_starts_from_the_archive_of_its_classes(broker: EmbeddedBroker) -> None:
    assert broker.pid
    assert is_mapped(broker.pid, class_data.archive("kafka", resolve(KAFKA)))


def is_mapped(pid: int, archive: Path) -> bool:
    """Whether the JVM has taken the archive; a test where there is none, or nobody can see, is skipped."""
    file = class_data.found(archive)
    if file is None:
        pytest.skip("this Java made no archive of class data")
    maps = Path(f"/proc/{pid}/maps")
    if not maps.is_file():
        pytest.skip("only Linux says what a process has mapped")
    return str(file) in maps.read_text(encoding="utf-8")


def test_jars_that_pyspark_ships_are_not_there_twice() -> None:
    names = {jar.name.rpartition("-")[0] for jar in resolve_for_spark(PACKAGES)}

    assert names == {"delta-spark_4.2_2.13", "delta-storage"}
