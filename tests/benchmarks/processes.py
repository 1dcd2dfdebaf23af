"""Processor time and memory of this process, its JVM and its Python workers, from /proc."""

import os
from collections.abc import Iterator
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)
"""utime, stime, and those of children that have ended, counted from the state of a process."""


def cpu_s(without: int | None = None) -> float:
    """Processor seconds used so far by the whole tree of processes, but for the subtree of `without`."""
    return sum(sum(map(int, fields[_TIMES])) for _, fields in _tree(without)) / _TICKS_PER_S


def peak_mib(without: int | None = None) -> dict[str, int]:
    """Largest resident memory so far: of the driver's JVM, of this Python, and of all workers together."""
    return _resident("VmHWM", without)


def resident_mib(without: int | None = None) -> dict[str, int]:
    """The same as `peak_mib`, at this moment."""
    return _resident("VmRSS", without)


def _resident(field: str, without: int | None) -> dict[str, int]:
    sizes = {"jvm": 0, "python": 0, "workers": 0}
    for pid, _ in _tree(without):
        name = "python" if pid == os.getpid() else "jvm" if _name(pid) == "java" else "workers"
        sizes[name] += _status_kib(pid, field)
    return {name: kib // 1024 for name, kib in sizes.items()}


def _tree(without: int | None) -> Iterator[tuple[int, list[str]]]:
    stats = dict(_stats())
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        if pid == without:
            continue
        yield pid, stats[pid]
        waiting += [child for child, fields in stats.items() if int(fields[1]) == pid]


def _stats() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8")
        except OSError:
            continue
        # The name, in parentheses, may hold anything.
        yield int(folder.name), text.rpartition(")")[2].split()


def _name(pid: int) -> str:
    return _read(pid, "comm").strip()


def _status_kib(pid: int, field: str) -> int:
    lines = _read(pid, "status").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8")
    except OSError:
        return ""
