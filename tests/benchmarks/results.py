"""What a run leaves behind: everything as JSON, the figures that matter as Markdown."""

import json
import math
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"

_RATES = (
    ("best_per_s", "best, commits/s"),
    ("median_per_s", "median, commits/s"),
    ("cpu_s_median", "processor s"),
)
_BATCHES = (
    ("rows", "rows"),
    ("partitions_asked", "partitions asked"),
    ("commits_per_batch", "commits a batch"),
    ("first_batch_s", "first batch s"),
    ("whole_p50_s", "whole p50 s"),
    ("whole_p95_s", "whole p95 s"),
    ("without_plan_and_history_p50_s", "steps without plan, history p50 s"),
    ("cpu_s_p50", "processor s"),
)

_GROWS = {
    "exponent of a whole batch": "whole_p50_s",
    "of its steps without plan, history": "without_plan_and_history_p50_s",
}
"""Times of a batch that grow with its rows."""


def write(run: dict[str, Any], name: str) -> tuple[Path, Path]:
    """The two files of a run of benchmarks, written again."""
    return save(name, run, markdown(run))


def save(name: str, run: dict[str, Any], text: str) -> tuple[Path, Path]:
    """A run and what is said of it, in two files."""
    FOLDER.mkdir(exist_ok=True)
    as_json, as_markdown = FOLDER / f"{name}.json", FOLDER / f"{name}.md"
    as_json.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    as_markdown.write_text(text, encoding="utf-8")
    return as_json, as_markdown


def markdown(run: dict[str, Any]) -> str:
    """The run as Markdown: machine, decode rates, batches, steps, memory, and the tables that parts made."""
    parts = run["parts"]
    batches = {name: part for name, part in parts.items() if "seconds_by_step" in part}
    blocks = [where(run)]
    if "decode" in parts:
        blocks.append(_rows("decode + newest per key", parts["decode"], _RATES))
    if batches:
        blocks.append(_rows("batch", batches, _BATCHES))
        if grown := growth(parts):
            blocks.append(table(["from rows", "to rows", *_GROWS], grown))
        blocks.append(_columns("step, p50 s", {n: part["seconds_by_step"] for n, part in batches.items()}))
        blocks.append(_columns("peak memory, MiB", {n: part["peak_mib"] for n, part in batches.items()}))
    for part in parts.values():
        blocks += [table(of["header"], of["rows"]) for of in part.get("tables", [])]
    return "\n\n".join(blocks) + "\n"


def growth(parts: dict[str, Any]) -> list[list[Any]]:
    """From each size of `rows-…` to the next: both, and the exponents of rows by which the figures of `_GROWS` grow."""
    sizes = sorted((part for name, part in parts.items() if name.startswith("rows-")), key=itemgetter("rows"))
    return [
        [less["rows"], more["rows"], *(_exponent(less, more, key) for key in _GROWS.values())]
        for less, more in pairwise(sizes)
    ]


def _exponent(less: dict[str, Any], more: dict[str, Any], key: str) -> float:
    return round(math.log(more[key] / less[key]) / math.log(more["rows"] / less["rows"]), 2)


def where(run: dict[str, Any]) -> str:
    """Machine, versions and time of a run, in one line."""
    machine = run["machine"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; load average at start "
        f"{machine['load_average_1m']}; Python {machine['python']}, {machine['java']}; "
        f"commit {machine['commit']}{' with changes' if machine['uncommitted'] else ''}; {run['at']}"
        f"{'; quick run' if run.get('quick') else ''}."
    )


def table(header: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table; numbers with thousands separators."""
    lines = [header, ["---"] * len(header), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _rows(title: str, parts: dict[str, Any], columns: tuple[tuple[str, str], ...]) -> str:
    header = [title, *(text for _, text in columns)]
    return table(header, [[name, *(part[key] for key, _ in columns)] for name, part in parts.items()])


def _columns(title: str, parts: dict[str, dict[str, Any]]) -> str:
    keys = dict.fromkeys(key for part in parts.values() for key in part)
    return table([title, *parts], [[key, *(part.get(key, "") for part in parts.values())] for key in keys])


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
