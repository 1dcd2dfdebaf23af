"""`lagwise run` on a configuration that cannot be used; what cannot, and why, is tested with `load.load`."""

import subprocess
import sys
from pathlib import Path


def test_unusable_config_is_one_line_and_status_1(tmp_path: Path) -> None:
    file = tmp_path / "lagwise.toml"
    file.write_text('[kafka.properties]\n"bootstrap.servers" = "localhost:1"\n[plan]\nstrategy = "lag-aw')
    command = [
        sys.executable,
        "-c",
        "from pipeline.operate.cli.app import main; main()",
        "run",
        "--config",
        str(file),
    ]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    (line,) = done.stderr.splitlines()
    assert f"{file}: not TOML" in line
    assert (done.returncode, done.stdout) == (1, "")
