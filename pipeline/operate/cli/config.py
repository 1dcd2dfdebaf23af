"""`lagwise config check`: the effective configuration, and what is risky about it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.config.advice import warnings
from pipeline.config.load import load
from pipeline.config.secret_values import masked
from pipeline.operate.cli.locations import find_config
from pipeline.operate.output import note

config = typer.Typer(no_args_is_help=True, add_completion=False, help="Check a configuration.")

# Tables of free properties, which may hold secrets.
_FREE_TABLES = (("kafka", "properties"), ("kafka", "java"), ("tables", "storage_options"), ("spark",))


@config.command()
def check(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Configuration; default LAGWISE_CONFIG, else conf/lagwise.toml.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the effective configuration of FILE, with defaults filled in and secrets masked.

    Example: lagwise config check conf/lagwise.toml

    Warnings go to stderr. The command connects to nothing.
    Exit status: 0 the configuration can be used, 1 it cannot, 2 wrong usage.
    """
    loaded = load(find_config(file))
    settings = loaded.model_dump(exclude_none=True)
    for *outer, name in _FREE_TABLES:
        table = settings[outer[0]] if outer else settings
        table[name] = masked(table[name])
    for rule, printed in zip(loaded.plan.groups, settings["plan"]["groups"], strict=True):
        printed["guards"] = loaded.plan.guards_of(rule).model_dump(exclude_none=True)
    typer.echo("\n".join(_toml(settings)).strip())
    for warning in warnings(loaded):
        note(f"warning: {warning}")


def _toml(table: Mapping[str, Any], name: str = "", heading: str = "") -> Iterator[str]:
    """`table` as TOML lines: its own keys first, or they would belong to the table before them."""
    if heading:
        yield f"\n{heading}"
    for key, value in table.items():
        if not _is_table(value):
            # JSON's strings, numbers, booleans and arrays of them are TOML's too.
            yield f"{_key(key)} = {json.dumps(value)}"
    for key, value in table.items():
        if not _is_table(value):
            continue
        path = f"{name}.{_key(key)}".lstrip(".")
        if isinstance(value, Mapping):
            yield from _toml(value, path, f"[{path}]")
        else:
            for entry in value:
                yield from _toml(entry, path, f"[[{path}]]")


def _is_table(value: Any) -> bool:
    is_list_of_tables = isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)
    return isinstance(value, Mapping) or is_list_of_tables


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else json.dumps(name)


@config.callback()
def _only_group() -> None:
    """Keep `check` a subcommand: typer would make a lone command the group itself."""
