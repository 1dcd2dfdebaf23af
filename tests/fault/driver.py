"""A driver that kills itself, and the JVM with it, behind a step.

Run as `python tests/fault/driver.py ROOT BROKER STEP WHEN [CHECKPOINT]`.

STEP is a step of `pipeline.run.batch.steps.run`, or `none` for a driver that reads what is there, sends no plans and
ends; any other word is for one that somebody else kills.
WHEN is `first` for its first batch, `planning` for the first one behind the start-up, which is planned and published.
CHECKPOINT is a folder, for tables that are in none.
"""

import os
import signal
import sys
from functools import partial

from pipeline.config.model import Config, HistoryConfig, KafkaConfig, TablesConfig, TriggerConfig
from pipeline.logs import configure
from pipeline.run.batch.steps import run
from pipeline.run.health.monitor import Monitor
from pipeline.run.job import Job
from tests.support.job.job import eager_plan
from tests.support.job.steps import WatchedSteps


def config(root: str, bootstrap: str, *, dry_run: bool, checkpoint: str = "") -> Config:
    """Everything is due in every batch, so that every step has something to lose."""
    return Config(
        kafka=KafkaConfig(properties={"bootstrap.servers": bootstrap}),
        tables=TablesConfig(root=root, checkpoint=checkpoint, upkeep_every_batches=2, retention_hours=0.01),
        trigger=TriggerConfig(interval_s=1),
        history=HistoryConfig(interval_s=1, max_gap_s=1),
        # A batch that is killed again and again is decided about at last, with the log offsets of its first run.
        plan=eager_plan(dry_run=dry_run, max_staleness_s=3600),
    )


class Killing(WatchedSteps):
    """The steps, with a SIGKILL to the whole process group behind one of them."""

    def __init__(self, monitor: Monitor, *, step: str, when: str) -> None:
        super().__init__(monitor)
        self.step = step
        self.when = when

    def behind(self, name: str) -> None:
        if name == self.step and (self.when == "first" or self.is_due()):
            os.killpg(0, signal.SIGKILL)

    def is_due(self) -> bool:
        """Whether everything is read to its end, as it is for the first batch that is planned."""
        if self.batch is None:
            # It is not settled yet; the batch before it was.
            return not self.driver.replay.is_first and not self.driver.progress.behind
        return not self.batch.stamp.behind


def main() -> None:
    root, bootstrap, step, when, *places = sys.argv[1:]
    configure()
    to_the_end = step == "none"
    settings = config(root, bootstrap, dry_run=to_the_end, checkpoint="".join(places))
    job = Job(settings, once=to_the_end, run_batch=partial(run, steps=partial(Killing, step=step, when=when)))
    signal.signal(signal.SIGTERM, lambda *_: job.stop.set())
    job.run()


if __name__ == "__main__":
    main()
