"""Make the class data archives: run a broker and the job once, and archive the classes that their JVMs load.

The job itself is the rehearsal: what it loads for groups with members and commits is what it will load again. The
commits are too many for the driver to read by itself, so that Spark's tasks are rehearsed too.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

import pyspark
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.errors import BrokerUnavailableError
from pipeline.local import class_data
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.run import main as job

_TOPIC, _PARTITIONS = "rehearsal", 100
# Each in another one of the two partitions of the offsets topic.
_GROUPS = ("a", "b")
_COMMITS = 300
_TIMEOUT_S = 20.0
_JOB_WITHIN_S = 300.0
_AGAIN = "python -m pipeline.operate.fetch"
# While the broker ends and writes its archive, its clients would log several lines a second about it.
_QUIET = {"log_level": 0}
_BROKER = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "1"}
_CONFIG = """
[kafka.properties]
"bootstrap.servers" = "{servers}"
[tables]
root = "{folder}/tables"
"""


def make_archives(
    *, spark_jars: tuple[Path, ...], kafka_jars: tuple[Path, ...], report: Callable[[str], None]
) -> None:
    """Make the archives that are missing; without them everything works, and starts take twice as long.

    `spark_jars` are what Spark needs besides the jars of pyspark; `report` receives each step, and why one failed.
    """
    spark = class_data.archive("spark", class_data.spark_class_path(spark_jars))
    kafka = class_data.archive("kafka", kafka_jars)
    if class_data.found(spark) and class_data.found(kafka):
        return
    report("Rehearsing a start of Kafka and Spark, so that later ones take half the time; this happens once")
    try:
        kafka.parent.mkdir(parents=True, exist_ok=True)
        # Next to their place: a rename does not cross file systems.
        with tempfile.TemporaryDirectory(prefix="partial-", dir=kafka.parent) as scratch:
            _make(Path(scratch), spark, kafka, spark_jars, report)
    except (
        BrokerUnavailableError,
        KafkaException,
        OSError,
        FutureTimeoutError,
    ) as error:
        report(f"the rehearsal failed, so starts stay slow (`{_AGAIN}` tries again): {error}")


def _make(
    scratch: Path, spark: Path, kafka: Path, spark_jars: Iterable[Path], report: Callable[[str], None]
) -> None:
    made = {archive: Path(scratch, archive.name) for archive in (spark, kafka)}
    with EmbeddedBroker(properties=_BROKER, archive=made[kafka]) as broker:
        _rehearse(broker.bootstrap_servers, scratch, made[spark], spark_jars)
    # What a rehearsal that failed has left is half of what a start loads.
    for archive, file in made.items():
        if not class_data.put_in_place(file, archive):
            kind = archive.name.partition("-")[0]
            report(f"this Java left no archive of {kind}'s classes: its starts stay slow")


def _rehearse(servers: str, folder: Path, archive: Path, jars: Iterable[Path]) -> None:
    """Run the job once over two groups, each with a member and many commits."""
    admin = AdminClient({"bootstrap.servers": servers, **_QUIET})
    for future in admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)]).values():
        future.result(_TIMEOUT_S)
    producer = Producer({"bootstrap.servers": servers, **_QUIET})
    for number in range(_PARTITIONS):
        producer.produce(_TOPIC, b"%d" % number, partition=number)
    producer.flush(_TIMEOUT_S)
    members = [_member(servers, group) for group in _GROUPS]
    try:
        _run_job(servers, folder, archive, jars)
    finally:
        for member in members:
            member.close()


def _member(servers: str, group: str) -> Consumer:
    """The one member of a group that has committed every partition many times."""
    member = Consumer(
        {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, **_QUIET}
    )
    member.subscribe([_TOPIC])
    member.poll(_TIMEOUT_S)
    offsets = [TopicPartition(_TOPIC, number, 1) for number in range(_PARTITIONS)]
    for _ in range(_COMMITS):
        member.commit(offsets=offsets, asynchronous=False)
    return member


def _run_job(servers: str, folder: Path, archive: Path, jars: Iterable[Path]) -> None:
    config = folder / "lagwise.toml"
    config.write_text(_CONFIG.format(servers=servers, folder=folder), encoding="utf-8")
    # By spark-submit, since the archive is written by a JVM that ends, and it waits for that.
    command = [
        *(str(Path(pyspark.__file__).with_name("bin") / "spark-submit"), "--master", "local[*]"),
        *("--driver-class-path", os.pathsep.join(map(str, jars))),
        *("--driver-java-options", class_data.one_line(class_data.make(archive))),
        *(job.__file__, "--config", str(config), "--once"),
    ]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    try:
        done = subprocess.run(
            command,
            env={"SPARK_LOCAL_IP": "127.0.0.1"} | dict(os.environ) | python,
            capture_output=True,
            text=True,
            timeout=_JOB_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"the job did not end within {_JOB_WITHIN_S:.0f} s; is the machine busy?") from None
    if done.returncode:
        last = "\n".join(done.stderr.splitlines()[-5:])
        raise OSError(f"the job ended with status {done.returncode}: {last}")
