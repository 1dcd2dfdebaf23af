"""The texts for operators in a package's source, so that they can be read and tested in one go.

`python -m tests.support.operate.message_texts pipeline/operate` prints them.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NOTES = {"note", "explained", "error_of_call", "BadParameter"}
_HELPS = {"Option", "Argument", "Typer"}


class Text(NamedTuple):
    """One text: where it stands, and what it says with `x` for each value that is filled in."""

    place: str
    text: str


def messages(folder: Path) -> list[Text]:
    """Texts of errors that are raised, and of lines on stderr."""
    return [
        Text(place, text)
        for place, call in _calls(folder)
        if _name(call) in _NOTES or _name(call).endswith("Error")
        for text in [_rendered(call.args[0] if call.args else None)]
        # A clause of one or two words is a value, and a word in an exception of Python's own.
        if text is not None and " " in text
    ]


def helps(folder: Path) -> list[Text]:
    """Helps of options and arguments."""
    return [
        Text(place, text)
        for place, call in _calls(folder)
        if _name(call) in _HELPS
        for keyword in call.keywords
        if keyword.arg == "help"
        for text in [_rendered(keyword.value)]
        if text is not None
    ]


def _calls(folder: Path) -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield f"{path}:{node.lineno}", node


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _rendered(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    return None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for found in (*messages(Path(name)), *helps(Path(name))):
            sys.stdout.write(f"{found.place}: {found.text}\n")
