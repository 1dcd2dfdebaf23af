"""`python -m tests.benchmarks.soak [--seconds 3600]`: does anything grow while the stream runs?

Traffic, three live consumers and the whole job, a batch every five seconds. Every 30 seconds a sample is taken:
files and bytes of every table, of its log and of the checkpoint, heap after a collection, resident memory,
batch times. In the end the first third is held against the last, warm-up left out.
"""

import argparse
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pipeline.config.model import (
    Config,
    HistoryConfig,
    KafkaConfig,
    PlanConfig,
    SourceConfig,
    TablesConfig,
    TriggerConfig,
)
from pipeline.run.job import Job
from pipeline.run.query import Report
from tests.benchmarks import machine, results
from tests.benchmarks.parts import say
from tests.benchmarks.soak_sample import Sampler
from tests.benchmarks.soak_traffic import Traffic
from tests.benchmarks.soak_verdict import compare, markdown
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.job.job import NO_GUARDS

_TRIGGER_S = 5
_UPKEEP_EVERY_BATCHES = 24
_RETENTION_HOURS = 0.05
_KAFKA_RETENTION_MS = 120_000


def main() -> None:
    """Run it, and write down how it was."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.soak", description=__doc__)
    parser.add_argument("--seconds", type=int, default=3600, help="how long (default %(default)s)")
    seconds = parser.parse_args().seconds
    begun = datetime.now(tz=timezone.utc)
    run: dict[str, Any] = {
        "at": begun.isoformat(timespec="seconds"),
        "seconds": seconds,
        "trigger_s": _TRIGGER_S,
        "machine": machine.facts(),
    }
    say(f"machine: {run['machine']}")
    run["samples"] = _soak(seconds)
    run["comparison"] = compare(run["samples"])
    name = f"soak-{begun:%Y%m%dT%H%M%SZ}"
    text = markdown(run)
    say(f"written: {results.save(name, run, text)}\n{text}")


def _soak(seconds: int) -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory(prefix="lagwise-soak-") as folder,
        small_broker(
            log_cleaner_backoff_ms="5000",
            log_retention_check_interval_ms="10000",
            log_retention_ms=str(_KAFKA_RETENTION_MS),
        ) as broker,
    ):
        create_offsets_topic(broker.bootstrap_servers)
        config = _config(broker.bootstrap_servers, Path(folder))
        reports: list[Report] = []
        job = Job(config, on_batch=reports.append)
        sampler = Sampler(config.tables, reports, broker_pid=broker.pid, say=say)
        with Traffic(broker.bootstrap_servers):
            ending = threading.Thread(target=_end, args=(job, sampler, seconds), daemon=True)
            ending.start()
            job.run()
            ending.join()
    return sampler.samples


def _end(job: Job, sampler: Sampler, seconds: int) -> None:
    """Sample until the time is over, then end the job; beside it, in a thread of its own."""
    try:
        sampler.run(until_s=time.monotonic() + seconds)
    finally:
        job.stop.set()


def _config(bootstrap: str, folder: Path) -> Config:
    return Config(
        kafka=KafkaConfig(properties={"bootstrap.servers": bootstrap, "log_level": "0"}),
        source=SourceConfig(request_timeout_s=10),
        tables=TablesConfig(
            root=str(folder / "tables"),
            retention_hours=_RETENTION_HOURS,
            upkeep_every_batches=_UPKEEP_EVERY_BATCHES,
        ),
        trigger=TriggerConfig(interval_s=_TRIGGER_S),
        history=HistoryConfig(interval_s=60),
        plan=PlanConfig(interval_s=60, dry_run=False, guards=NO_GUARDS),
        spark={"spark.driver.memory": "1g"},
    )


if __name__ == "__main__":
    main()
