"""A driver that kills itself, and the JVM with it, behind a step: `python tests/fault/blind_driver.py ROOT BROKERS STEP WHEN`.

STEP is a step of `pipeline.run.batch.steps.run`, or `none` for a driver that reads what is there and ends.
WHEN is

    first     for its first batch
    blind     for the first one in which some leader did not answer
    reading   for the first one that reads the partition of the offsets topic that `PARTITION` names
    halted    the same, which first makes the file ROOT.chosen and waits for ROOT.go between the choice of the source
              and the job that reads
"""

import json
import sys
from functools import partial
from pathlib import Path

from pipeline.config.model import SourceConfig
from pipeline.kafka.positions import Intake
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.logs import configure
from pipeline.run.batch.opening import Chosen
from pipeline.run.batch.steps import run
from pipeline.run.health.monitor import Monitor
from pipeline.run.job import Job
from pipeline.source.offset import from_json
from tests.fault.driver import Killing, config
from tests.support.waiting import wait_until

PARTITION = 1
_HALTED_WITHIN_S = 600


class Blind(Killing):
    """The steps, which are killed behind one of them, and may halt before they read."""

    def __init__(self, monitor: Monitor, *, step: str, when: str, root: str) -> None:
        super().__init__(monitor, step=step, when=when)
        self.root = root

    def behind(self, name: str) -> None:
        if name == "begin" and self.when == "halted":
            self._halt()
        super().behind(name)

    def is_due(self) -> bool:
        chosen = self.values.get("settle_offset")
        if not isinstance(chosen, Chosen):
            return False
        if self.when == "blind":
            is_new = chosen.first_run is None
            return is_new and any(isinstance(answer, str) for answer in chosen.offset.answers.values())
        return _has(chosen.offset.intake)

    def _halt(self) -> None:
        begun = self.values["begin"]
        if _is_to_read(Path(self.root) / "_checkpoint" / "batches" / "offsets" / str(begun.batch_id)):
            Path(f"{self.root}.chosen").touch()
            wait_until(Path(f"{self.root}.go").exists, what="the word to go on", within_s=_HALTED_WITHIN_S)


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
    steps = partial(Blind, step=name, when=when, root=root)
    Job(settings, once=name == "none", run_batch=partial(run, steps=steps)).run()


if __name__ == "__main__":
    main()
