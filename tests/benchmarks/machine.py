"""What a figure was measured on: without it the figure says nothing."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline.local.embedded.config import KAFKA
from pipeline.local.java import find_java
from pipeline.run.spark.session import PACKAGES

_ROOT = Path(__file__).parents[2]
_PYTHON_PACKAGES = ("pyspark", "delta-spark", "deltalake", "confluent-kafka", "numpy", "pyarrow")


def facts() -> dict[str, Any]:
    """Machine, versions, commit, and how busy the machine was when asked."""
    return {
        "cpu": _after("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(_after("/proc/meminfo", "MemTotal").split()[0]) / 2**20, 1),
        "load_average_1m": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": _java(),
        "packages": {name: version(name) for name in _PYTHON_PACKAGES},
        "jars": [*PACKAGES, KAFKA[0]],
        "commit": _git("rev-parse", "--short", "HEAD"),
        "uncommitted": bool(_git("status", "--porcelain", "--", "assignor", "pipeline")),
    }


def _after(path: str, name: str) -> str:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "unknown")


def _java() -> str:
    answer = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True)
    # Options from the environment are said first.
    return next(line for line in answer.stderr.splitlines() if " version " in line)


def _git(*arguments: str) -> str:
    answer = subprocess.run(["git", "-C", _ROOT, *arguments], capture_output=True, text=True, check=False)
    return answer.stdout.strip()
