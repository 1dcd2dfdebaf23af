"""Locations of tables and configuration: options that commands share."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.config.secret_values import resolve
from pipeline.errors import ConfigError
from pipeline.tables.reading import Tables

DEFAULT_CONFIG = "conf/lagwise.toml"
DEMO_TABLES = ".lagwise/demo/tables"

TablesOption = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="DIR",
        help="Folder or URL of the tables; default LAGWISE_TABLES.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f"Configuration that names the tables; default LAGWISE_CONFIG, else {DEFAULT_CONFIG}, else the demo's.",
        show_default=False,
    ),
]
StreamConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f"Configuration of the stream; default LAGWISE_CONFIG, else {DEFAULT_CONFIG}.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """Tables and the configuration of the stream that writes them (defaults when only a folder is known)."""

    tables: Tables
    config: Config
    is_configured: bool
    """A file gave the configuration."""


def find(tables: str | None, config: Path | None) -> TableSource:
    """The tables that options, environment or working directory name, in this order.

    Raises:
        ConfigError: None of them names one, or the configuration cannot be used.
    """
    root = tables or (None if config else os.environ.get("LAGWISE_TABLES"))
    file = config or _path_of(os.environ.get("LAGWISE_CONFIG"))
    if root or file:
        settings = load(file) if file else Config()
        return _source(root or settings.tables.root, settings, is_configured=file is not None)
    return next(_in_working_directory(), None) or _nowhere()


def find_config(config: Path | None) -> Path:
    """The configuration that option, environment or working directory name; it may not exist."""
    return config or _path_of(os.environ.get("LAGWISE_CONFIG")) or Path(DEFAULT_CONFIG)


def _path_of(text: str | None) -> Path | None:
    return Path(text) if text else None


def _source(root: str, config: Config, *, is_configured: bool) -> TableSource:
    tables = Tables(root, resolve(config.tables.storage_options))
    return TableSource(tables=tables, config=config, is_configured=is_configured)


def _in_working_directory() -> Iterator[TableSource]:
    if Path(DEFAULT_CONFIG).is_file():
        settings = load(DEFAULT_CONFIG)
        # A clone always has this file; that the stream ran with it shows in the folder it names.
        if "://" in settings.tables.root or Path(settings.tables.root).is_dir():
            yield _source(settings.tables.root, settings, is_configured=True)
    if Path(DEMO_TABLES).is_dir():
        yield _source(DEMO_TABLES, Config(), is_configured=False)


def _nowhere() -> TableSource:
    raise ConfigError(
        "no tables found: name their folder with --tables DIR or --config FILE (or LAGWISE_TABLES or "
        "LAGWISE_CONFIG), or create some with `lagwise demo`"
    )
