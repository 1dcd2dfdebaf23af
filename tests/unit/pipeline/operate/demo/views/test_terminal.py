import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import os, subprocess, sys
from pathlib import Path
from pipeline.operate.demo.views.terminal import kept_clean
print("before")
with kept_clean(Path(sys.argv[1])) as console:
    console.print("shown")
    os.write(1, b"client\\n")
    os.write(2, b"java\\n")
    print("printed")
    subprocess.run(["echo", "child"], check=True)
print("after")
print("error", file=sys.stderr)
"""


def test_only_the_console_reaches_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"

    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(log)], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "before\nshown\nafter\n"
    assert done.stderr == "error\n"
    assert sorted(log.read_text().split()) == ["child", "client", "java", "printed"]
