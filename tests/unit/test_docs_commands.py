"""What README and docs show works: each `lagwise …` line is a command with known options, each configuration loads."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from pipeline.config.load import load
from pipeline.operate.cli.app import COMMANDS, load_command

# Typer has a click of its own.
UsageError = typer.BadParameter.__mro__[1]
_ROOT = Path(__file__).parents[2]
# But for the first line that the demo shows.
_LINE = re.compile(r"^(?: {4,})?(?:\S+/bin/)?lagwise (?!demo \d)(?P<rest>[a-z].*)$", re.MULTILINE)
_PAGES = [_ROOT / "README.md", *sorted((_ROOT / "deploy" / "docs").glob("*.md"))]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command, up to the next one of the shell's."""
    text = page.read_text(encoding="utf-8")
    fenced = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    indented = "\n".join(line for line in text.splitlines() if line.startswith("    "))
    for found in _LINE.finditer(f"{fenced}\n{indented}"):
        lexer = shlex.shlex(found["rest"], posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        ends = [at for at, word in enumerate(words) if set(word) <= set("|&;<>()")]
        yield words[: min(ends, default=len(words))]


def parsed(words: list[str]) -> None:
    """Parse the options as the command would, and run nothing.

    Raises:
        UsageError: There is no such command or option.
    """
    name, *rest = words
    if name not in COMMANDS:
        raise UsageError(f"no command {name}")
    command = load_command(name)
    if isinstance(command, TyperGroup):
        with command.make_context(name, rest[:1]) as context:
            _, command, _ = command.resolve_command(context, rest[:1])
        rest = rest[1:]
    command.make_context(name, rest)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_commands_of_the_page_exist(page: Path) -> None:
    wrong = {}
    for words in commands(page):
        try:
            parsed(words)
        except UsageError as error:
            wrong[shlex.join(words)] = error.format_message()

    assert wrong == {}


def test_a_command_with_an_unknown_option_is_found() -> None:
    with pytest.raises(UsageError, match="No such option"):
        parsed(["lag", "--toop", "10"])
    with pytest.raises(UsageError, match="no command"):
        parsed(["lags"])


def configurations(page: Path) -> Iterator[str]:
    """Blocks of TOML, at any indentation."""
    text = page.read_text(encoding="utf-8")
    for indent, block in re.findall(r"^( *)```toml\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        yield re.sub(f"^{indent}", "", block, flags=re.MULTILINE)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_configurations_of_the_page_are_accepted(page: Path, tmp_path: Path) -> None:
    for number, text in enumerate(configurations(page)):
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")

        load(file)
