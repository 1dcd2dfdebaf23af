"""Same inputs, any hash seed: the same answer, byte for byte."""

import os
import subprocess
import sys
from pathlib import Path

import assignor

_REPOSITORY = Path(__file__).parents[4]
_CASES = sorted((Path(assignor.__file__).parent / "cases" / "examples").glob("*.json"))
_ANSWER = """
import sys
from assignor.cases.run import run_lines
for line in sys.stdin:
    strategy, case = line.split("\\t")
    run_lines([case], sys.stdout.write, strategy_name=strategy, clock=lambda: 0.0)
"""


def test_answers_do_not_depend_on_the_hash_seed() -> None:
    asked = [file for file in _CASES if not file.name.endswith(".result.json")]
    lines = "".join(f"{file.stem}\t{' '.join(file.read_text(encoding='utf-8').split())}\n" for file in asked)

    answers = {_answers(lines, seed) for seed in ("0", "1", "4711")}

    assert len(answers) == 1
    assert answers.pop().count('"assignment":{') == len(asked) > 0


def _answers(lines: str, seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", _ANSWER],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        cwd=_REPOSITORY,
        env=os.environ | {"PYTHONHASHSEED": seed},
    ).stdout
