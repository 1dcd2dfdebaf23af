"""What deploy/pack.sh packs runs wherever it is unpacked, and has what tasks import."""

import subprocess
from pathlib import Path

import pyspark

from pipeline.local.shipped_code import zipped
from tests.support.spark.packed_python import pack

_SPARK = Path(pyspark.__file__).parent / "python" / "lib"
# As Spark starts a worker: its own Python files and the code that was shipped are on the path, and nothing else.
_PROGRAM = """
import sys
import pipeline.source.reading, pipeline.run.tasks.deciding, pipeline.run.tasks.folding, pipeline.run.tasks.tables
print(sys.prefix, pipeline.decode.step.__file__)
"""


def test_environment_that_was_packed_in_one_folder_runs_in_another(tmp_path: Path) -> None:
    archive = pack(tmp_path / "packed.tar.gz")
    first, moved = tmp_path / "first", tmp_path / "moved"
    first.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", first], check=True)
    first.rename(moved)
    code = zipped()
    path = ":".join(map(str, [code, *sorted(_SPARK.glob("*.zip"))]))

    done = subprocess.run(
        ["./bin/python", "-c", _PROGRAM],
        cwd=moved,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(moved), f"{code}/pipeline/decode/step.py"]
    assert not [*moved.rglob("pyspark"), *moved.rglob("lagwise*"), *moved.rglob("pipeline")]
