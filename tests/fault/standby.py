"""A driver as `pipeline/run/main.py --standby` runs it, that loses patience sooner.

Run as `python tests/fault/standby.py CONFIG PATIENCE_S [STEP]`. Behind STEP, once, it stops its process group as
SIGSTOP does, until somebody sends SIGCONT: behind `record_decisions` when there are plans to be published, behind
another step in the first batch after the start-up.
"""

import os
import signal
import sys
from functools import partial
from pathlib import Path

from pipeline.publish.read_back import decisions_of
from pipeline.run import main
from pipeline.run.batch.steps import run
from pipeline.run.job import Job
from pipeline.tables.owner import standby
from tests.fault.driver import Killing


class Freezing(Killing):
    """The steps, with a SIGSTOP to the whole process group behind one of them, once."""

    has_frozen = False

    def behind(self, name: str) -> None:
        if name == self.step and not Freezing.has_frozen and self.is_due() and self._has_plans(name):
            Freezing.has_frozen = True
            os.killpg(0, signal.SIGSTOP)

    def _has_plans(self, name: str) -> bool:
        if name != "record_decisions":
            return True
        decided = self.values[name]
        return decided is not None and bool(decisions_of(decided).plans)


if __name__ == "__main__":
    config, patience, *steps = sys.argv[1:]
    standby.PATIENCE_S = float(patience)
    for step in steps:
        main.Job = partial(Job, run_batch=partial(run, steps=partial(Freezing, step=step, when="planning")))
    sys.exit(main.run(Path(config), once=False, is_standby=True))
