"""A driver that kills itself, and the JVM with it, behind a step: `python tests/fault/driver.py ROOT BROKER STEP WHEN`.

STEP is a name out of `pipeline.run.batch.steps.STEPS`, or `none` for a driver that reads what is there, sends what was left
unsent, makes no new plans and ends.
WHEN is `first` for its first batch, `planning` for the first one behind the start-up, which is planned and published.
"""

import os
import signal
import sys

from pipeline.config.model import Config, HistoryConfig, KafkaConfig, TablesConfig, TriggerConfig
from pipeline.logs import configure
from pipeline.run.batch.steps import STEPS, Step
from pipeline.run.driver import Batch
from pipeline.run.job import Job
from tests.support.job import eager_plan


def config(root: str, bootstrap: str, *, dry_run: bool) -> Config:
    """Everything is due in every batch, so that every step has something to lose."""
    return Config(
        kafka=KafkaConfig(properties={"bootstrap.servers": bootstrap}),
        tables=TablesConfig(root=root, upkeep_every_batches=2, retention_hours=0.01),
        trigger=TriggerConfig(interval_s=1),
        history=HistoryConfig(interval_s=1, max_gap_s=1),
        # A batch that is killed again and again is decided about at last, with the log offsets of its first run.
        plan=eager_plan(dry_run=dry_run, max_staleness_s=3600),
    )


def killing(name: str, when: str) -> tuple[Step, ...]:
    """The steps, with a SIGKILL to the whole process group behind one of them."""

    def wrapped(step: Step) -> Step:
        def run(batch: Batch) -> None:
            step(batch)
            if step.__name__ == name and (when == "first" or _is_ready(batch)):
                os.killpg(0, signal.SIGKILL)

        run.__name__ = step.__name__
        return run

    return tuple(wrapped(step) for step in STEPS)


def _is_ready(batch: Batch) -> bool:
    if batch.stamp is None:
        # It is not settled yet; the batch before it was.
        return not batch.driver.replay.is_first and not batch.driver.progress.behind
    return not batch.stamp.behind


def main() -> None:
    root, bootstrap, step, when = sys.argv[1:]
    configure()
    to_the_end = step == "none"
    settings = config(root, bootstrap, dry_run=to_the_end)
    job = Job(settings, once=to_the_end, steps=killing(step, when))
    signal.signal(signal.SIGTERM, lambda *_: job.stop.set())
    job.run()


if __name__ == "__main__":
    main()
