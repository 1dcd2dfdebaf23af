"""Tasks that hang are ended, so that Spark tries them again."""

import subprocess
import sys
import textwrap

import pytest

_START = """
import time
import pyarrow as pa
from pipeline.arrow_stream import packed
from pipeline.planning.memory import PlanMemory
from pipeline.row_ranges import Ranges
from pipeline.run.tasks import deciding, folding
from pipeline.source import deadline
deadline.CLIENT_S, folding.TABLES_S, deciding.TABLES_S, deciding._GROUP_S = 0.1, 0.0, 0.0, 0.0
hang = lambda *_: time.sleep(60)
"""
_FOLD = """
ranges = Ranges(column="group_id", starts=())
task = folding.FoldingTask(root="", storage_options={}, name="", reads={}, fold=hang, ranges=ranges)
list(task([pa.record_batch({"number": pa.array([0], pa.int32()), "new": [packed(pa.table({}))]})]))
"""
_DECIDE = """
task = deciding.DecidingTask(storage_options={}, reads={}, settings=None, attempts=4)
deciding.DecidingTask._decide = hang
list(task([deciding.share(["a"], PlanMemory())]))
"""


@pytest.mark.parametrize("body", [_FOLD, _DECIDE], ids=["fold", "decide"])
def test_task_that_hangs_ends_its_process_and_says_where(body: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_START + body)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode != 0
    assert "Timeout (" in done.stderr, done.stderr
    assert "__call__" in done.stderr
