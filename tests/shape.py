"""The shape of the two packages in figures: `make shape`. Bounds stand beside them; the worst offenders are named."""

import ast
import re
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grimp
from importlinter.api import read_configuration
from radon.complexity import cc_visit
from radon.raw import analyze
from vulture import Vulture

PACKAGES = ("assignor", "pipeline")
MOST_MODULES, MOST_FILE_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS, MOST_COMPLEXITY = 16, 400, 60, 6, 10
MOST_OPTIONS = 8
_SURE_PERCENT = 80
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Sized:
    """Something with a size: a folder, a file or a function."""

    name: str
    size: int


def main() -> None:
    files = sorted(file for package in PACKAGES for file in Path(package).rglob("*.py"))
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    upward, cycles = list(_upward(graph)), list(_cycles(graph))
    _say("modules in a package", _modules(files), MOST_MODULES)
    _none("arrows upward", upward)
    _none("arrows of cycles", cycles)
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    _say(
        "lines of a file",
        [Sized(str(file), text.count("\n")) for file, text in texts.items()],
        MOST_FILE_LINES,
    )
    functions = [one for file, text in texts.items() for one in _functions(file, text)]
    _say("lines of a function", [Sized(name, _lines(node)) for name, node in functions], MOST_FUNCTION_LINES)
    _say("parameters", [Sized(name, _parameters(node)) for name, node in functions], MOST_PARAMETERS)
    _say(
        "options, constructors", [Sized(name, len(_options(node))) for name, node in functions], MOST_OPTIONS
    )
    _say("complexity (radon)", list(_complexity(texts)), MOST_COMPLEXITY)
    raw = [analyze(text) for text in texts.values()]
    lines, comments = sum(one.loc for one in raw), sum(one.comments for one in raw)
    _write("comments in 100 lines", f"{100 * comments / lines:6.1f}            {comments} in {lines} lines")
    _none("unused code (vulture)", list(_unused()))


def _say(what: str, sized: Sequence[Sized], most: int) -> None:
    sizes = sorted(one.size for one in sized)
    p95 = sizes[min(len(sizes) - 1, int(0.95 * len(sizes)))]
    over = sorted((one for one in sized if one.size > most), key=lambda one: -one.size)
    named = ", ".join(f"{one.name} {one.size}" for one in over[:_NAMED])
    above = f"; above: {len(over)} ({named})" if over else ""
    _write(
        what,
        f"{sizes[-1]:6}  of {most:<6} median {statistics.median(sizes):g}, p95 {p95}, of {len(sizes)}{above}",
    )


def _none(what: str, found: Sequence[str]) -> None:
    _write(what, f"{len(found):6}  of 0      {', '.join(found[:_NAMED])}")


def _write(what: str, figures: str) -> None:
    sys.stdout.write(f"{what:24} {figures}".rstrip() + "\n")


def _modules(files: Iterable[Path]) -> list[Sized]:
    counts: dict[str, int] = {}
    for file in files:
        counts[str(file.parent)] = counts.get(str(file.parent), 0) + 1
    return [Sized(name, count) for name, count in counts.items()]


def _upward(graph: grimp.ImportGraph) -> Iterator[str]:
    """Imports of a higher layer, by the contracts of pyproject.toml."""
    contracts: list[dict[str, Any]] = read_configuration()["contracts_options"]
    for contract in contracts:
        if contract["type"] != "layers":
            continue
        layers = [
            grimp.Layer(*(name.strip() for name in layer.split("|")), independent=True)
            for layer in contract["layers"]
        ]
        broken = graph.find_illegal_dependencies_for_layers(layers, containers=set(contract["containers"]))
        yield from sorted(f"{one.importer} -> {one.imported}" for one in broken)


def _cycles(graph: grimp.ImportGraph) -> Iterator[str]:
    """Fewest imports without which the modules and packages of each folder have no cycle."""
    for module in sorted(graph.modules):
        if graph.find_children(module):
            yield from sorted(
                f"{importer} -> {imported}" for importer, imported in graph.nominate_cycle_breakers(module)
            )


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(file: Path, text: str) -> Iterator[tuple[str, _Function]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _Function):
            yield f"{file}:{node.name}", node


def _lines(node: _Function) -> int:
    """Without decorators and docstring, which are there to be long."""
    first = node.body[0]
    is_documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_documented else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring


def _parameters(node: _Function) -> int:
    every = node.args
    # The parameters of a command of typer are its options.
    names = [one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs) if not _is_option(one)]
    return len(names) - (names[:1] in (["self"], ["cls"])) - len(_options(node))


def _options(node: _Function) -> list[str]:
    """Keyword-only parameters of a constructor that have a default.

    They are counted apart: a caller names the few that it wants, as with the clients of Kafka that users know, and
    reads nothing of the others. In a bag they would be as many, and the bag one more thing to import.
    """
    if node.name != "__init__":
        return []
    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return [one.arg for one, default in pairs if default is not None]


def _is_option(parameter: ast.arg) -> bool:
    annotation = parameter.annotation
    return annotation is not None and re.search(r"(Option|Argument)\b", ast.unparse(annotation)) is not None


def _complexity(texts: dict[Path, str]) -> Iterator[Sized]:
    for file, text in texts.items():
        for block in cc_visit(text):
            for one in (block, *getattr(block, "closures", ())):
                # A class is measured by its methods, which are blocks of their own.
                if not hasattr(one, "methods"):
                    yield Sized(f"{file}:{one.name}", one.complexity)


def _unused() -> Iterator[str]:
    # What `with` hands over has to be taken.
    vulture = Vulture(ignore_names=["kind", "error", "trace"])
    vulture.scavenge([*PACKAGES, "tests"])
    for one in vulture.get_unused_code(min_confidence=_SURE_PERCENT):
        file = Path(one.filename).resolve().relative_to(Path.cwd())
        if file.parts[0] in PACKAGES:
            yield f"{file}:{one.first_lineno} {one.name}"


if __name__ == "__main__":
    main()
