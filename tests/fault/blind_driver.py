"""A driver that kills itself, and the JVM with it, behind a step: `python tests/fault/blind_driver.py ROOT BROKERS STEP WHEN`.

STEP is a name out of `pipeline.run.batch.steps.STEPS`, or `none` for a driver that reads what is there and ends.
WHEN is

    first     for its first batch
    blind     for the first one in which some leader did not answer
    reading   for the first one that reads the partition of the offsets topic that `PARTITION` names
    halted    the same, which first makes the file ROOT.chosen and waits for ROOT.go between the choice of the source
              and the job that reads
"""

import json
import os
import signal
import sys
from pathlib import Path

from pipeline.config.model import SourceConfig
from pipeline.kafka.positions import Intake
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.logs import configure
from pipeline.run.batch.steps import STEPS, Step
from pipeline.run.driver import Batch
from pipeline.run.job import Job
from pipeline.source.offset import from_json
from tests.fault.driver import config
from tests.support.waiting import wait_until

PARTITION = 1
_HALTED_WITHIN_S = 600


def halting(step: Step, root: str) -> Step:
    """The step, and behind it the wait of `halted`."""

    def run(batch: Batch) -> None:
        step(batch)
        if _is_to_read(Path(root) / "_checkpoint" / "batches" / "offsets" / str(batch.batch_id)):
            Path(f"{root}.chosen").touch()
            wait_until(Path(f"{root}.go").exists, what="the word to go on", within_s=_HALTED_WITHIN_S)

    run.__name__ = step.__name__
    return run


def killing(step: Step, when: str) -> Step:
    """The step, and behind it the end of the whole process group."""

    def run(batch: Batch) -> None:
        step(batch)
        if when == "first" or (_is_blind(batch) if when == "blind" else _reads(batch)):
            os.killpg(0, signal.SIGKILL)

    run.__name__ = step.__name__
    return run


def _is_blind(batch: Batch) -> bool:
    return any(isinstance(answer, str) for answer in batch.answers.values())


def _reads(batch: Batch) -> bool:
    return _has(batch.intake)


def _is_to_read(offset_file: Path) -> bool:
    """Whether the source has chosen the partition; Spark writes the offset down, the last line, before the batch."""
    offset = from_json(json.loads(offset_file.read_text().splitlines()[-1]))
    return offset is not None and _has(offset.intake)


def _has(intake: Intake) -> bool:
    return any(span.key == (OFFSETS_TOPIC, PARTITION) for span in intake.spans)


def main() -> None:
    root, bootstrap, name, when = sys.argv[1:]
    configure()
    settings = config(root, bootstrap, dry_run=True)
    settings = settings.model_copy(update={"source": SourceConfig(request_timeout_s=5)})
    steps = tuple(killing(step, when) if step.__name__ == name else step for step in STEPS)
    if when == "halted":
        steps = tuple(halting(step, root) if step.__name__ == "begin" else step for step in steps)
    Job(settings, once=name == "none", steps=steps).run()


if __name__ == "__main__":
    main()
