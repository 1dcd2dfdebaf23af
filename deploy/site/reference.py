"""Pages that say what the code says: configuration, commands, columns, decisions."""

import re
from pathlib import Path
from typing import Any

import typer
from pyspark.sql.types import StructField
from typer.cli import get_docs_for_click

from pipeline.operate.cli.app import COMMANDS, app, load_command
from pipeline.tables.schemas import TABLES

_ROOT = Path(__file__).parents[2]
_SECTION = re.compile(r"^(?=\[+[a-z].*\]+$)", re.MULTILINE)


def configuration() -> str:
    """`conf/lagwise.toml`, which a test keeps equal to the model, section by section."""
    head, *sections = _SECTION.split((_ROOT / "conf" / "lagwise.toml").read_text(encoding="utf-8"))
    intro = " ".join(line.removeprefix("#").strip() for line in head.splitlines())
    parts = [f"# Configuration\n\n{intro.strip()}\n"]
    for section in sections:
        title, _, keys = section.partition("\n")
        name = title.strip("[]")
        parts.append(f"## {name}\n\n```toml\n{title}\n{keys.strip()}\n```\n")
    return "\n".join(parts)


def commands() -> str:
    """Help of `lagwise`, then of each command with its options."""
    listed = "".join(f"- [`{name}`](#lagwise-{name}): {text}\n" for name, text in COMMANDS.items())
    # Its own list cuts every line short.
    head = _help(typer.main.get_command(app), "lagwise", title="Commands").partition("**Commands**")[0]
    each = (_help(load_command(name), f"lagwise {name}") for name in COMMANDS)
    # One level deeper than a page of its own, for the headings of one page.
    return "\n".join((head, listed, *(re.sub(r"^#", "##", one, flags=re.MULTILINE) for one in each)))


def columns() -> str:
    """Each table with its columns and their comments."""
    parts = ["# Columns of the tables\n\nA column that may be null is null where its value is unknown.\n"]
    for table in TABLES:
        rows = "\n".join(map(_row, table.schema.fields))
        kept = "Holds the newest state" if table.is_latest else "Rows are only appended"
        by = f", partitioned by `{'`, `'.join(table.partition_by)}`" if table.partition_by else ""
        parts.append(
            f"## {table.name}\n\n{kept}{by}.\n\n"
            f"| Column | Type | Null | Meaning |\n|---|---|---|---|\n{rows}\n"
        )
    return "\n".join(parts)


def decisions() -> str:
    """A list of the decisions, by their titles."""
    pages = sorted((_ROOT / "deploy" / "docs" / "adr").glob("0*.md"))
    titles = ((page.name, page.read_text(encoding="utf-8").partition("\n")[0].strip("# ")) for page in pages)
    return "# Decisions\n\nWhat is costly to reverse, and why it is so.\n\n" + "".join(
        f"- [{title}]({name})\n" for name, title in titles
    )


def _help(command: Any, name: str, *, title: str | None = None) -> str:
    context = typer.Context(command, info_name=name)
    return get_docs_for_click(obj=command, ctx=context, name=name, title=title)


def _row(field: StructField) -> str:
    meaning = str(field.metadata.get("comment", "")).replace("|", "\\|").replace("<", "&lt;")
    null = "yes" if field.nullable else "no"
    return f"| `{field.name}` | {_type(field.dataType.simpleString())} | {null} | {meaning} |"


def _type(name: str) -> str:
    """A nested type by its outermost word alone; its fields are in its comment and in `DESCRIBE`."""
    return name.partition("<")[0]
