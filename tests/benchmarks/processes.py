"""Processor time and memory of this process, or of another, with its JVM and its Python workers, from /proc."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)
"""utime, stime, and those of children that have ended, counted from the state of a process."""


class Share(NamedTuple):
    """What one process has used so far."""

    name: str
    cpu_s: float
    """With that of children that have ended."""
    pss_mib: int
    """Memory; what several processes share is divided among them."""


def cpu_s(without: int | None = None) -> float:
    """Processor seconds used so far by the whole tree of processes, but for the subtree of `without`."""
    return sum(_cpu_s(fields) for _, fields in _tree(without))


def below(roots: Iterable[int]) -> list[int]:
    """Ids of these processes and of all below them."""
    return [pid for root in roots for pid, _ in _tree(None, root)]


def cpu_of(pid: int) -> float:
    """Processor seconds of one process so far, without its children; 0 where it is gone."""
    text = _read(pid, "stat")
    return _cpu_s(text.rpartition(")")[2].split()[: _TIMES.start + 2]) if text else 0.0


def each(root: int) -> dict[int, Share]:
    """Every process of the tree below `root`, with itself, by its id."""
    return {pid: Share(_name(pid), _cpu_s(fields), _pss_mib(pid)) for pid, fields in _tree(None, root)}


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


def _tree(without: int | None, root: int | None = None) -> Iterator[tuple[int, list[str]]]:
    stats = dict(_stats())
    waiting = [os.getpid() if root is None else root]
    while waiting:
        pid = waiting.pop()
        if pid == without:
            continue
        if pid in stats:
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


def _cpu_s(fields: list[str]) -> float:
    return sum(map(int, fields[_TIMES])) / _TICKS_PER_S


def _pss_mib(pid: int) -> int:
    return _kib_in(_read(pid, "smaps_rollup"), "Pss:") // 1024


def _status_kib(pid: int, field: str) -> int:
    return _kib_in(_read(pid, "status"), field)


def _kib_in(text: str, field: str) -> int:
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(field)), 0)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8")
    except OSError:
        return ""
