import subprocess
from pathlib import Path

from pipeline.child_python import module_command


def test_module_of_the_working_folder_does_not_stand_in_for_a_real_one(tmp_path: Path) -> None:
    for name in ("json.py", "pipeline.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong one')")

    done = subprocess.run(
        [*module_command("pipeline.operate.demo.processes.traffic"), "not an address", "{}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )

    assert "the wrong one" not in done.stderr
    assert "processes/traffic.py" in done.stderr


def test_arguments_are_those_behind_the_command() -> None:
    done = subprocess.run(
        [*module_command("json.tool"), "--no-such-option"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "unrecognized arguments: --no-such-option" in done.stderr
