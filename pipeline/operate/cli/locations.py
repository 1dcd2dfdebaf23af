"""Locations of tables and configuration: the options of commands."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.config.load import load
from pipeline.config.model import ClusterConfig, Config, KafkaConfig
from pipeline.config.secret_values import resolve
from pipeline.errors import ConfigError
from pipeline.tables.reading import Tables
from pipeline.tables.storage import folder_of

DEFAULT_CONFIG = "conf/lagwise.toml"
DEMO_TABLES = ".lagwise/demo/tables"


def _tables(more: str = "") -> Any:
    help_ = f"Folder or URL of the tables; default LAGWISE_TABLES.{more}"
    return typer.Option("--tables", metavar="DIR", help=help_)


def _config(what: str, more: str) -> Any:
    help_ = f"Configuration {what}; default LAGWISE_CONFIG, else {DEFAULT_CONFIG}{more}"
    return typer.Option("--config", metavar="FILE", help=help_)


_ELSE = ", else the demo's."
_SEVERAL = " Repeated: several clusters."
TablesOption = Annotated[str | None, _tables()]
ConfigOption = Annotated[Path | None, _config("that names the tables", _ELSE)]
SeveralTablesOption = Annotated[list[str] | None, _tables(_SEVERAL)]
SeveralConfigsOption = Annotated[list[Path] | None, _config("that names the tables", _ELSE + _SEVERAL)]
StreamConfigOption = Annotated[Path | None, _config("of the stream", ".")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """Tables and the configuration of the stream that writes them, or defaults if only a folder is known."""

    tables: Tables
    config: Config
    is_configured: bool
    """The configuration is from a file."""


def find(tables: str | None, config: Path | None) -> TableSource:
    """The tables from options, environment or working directory, in this order.

    Raises:
        ConfigError: None of them names tables, or the configuration cannot be used.
    """
    root = tables or (None if config else os.environ.get("LAGWISE_TABLES"))
    file = config or _path_of(os.environ.get("LAGWISE_CONFIG"))
    if root or file:
        settings = load(file) if file else Config()
        return _source(root or settings.tables.root, settings, is_configured=file is not None)
    return next(_in_working_directory(), None) or _nowhere()


def find_several(tables: Sequence[str], configs: Sequence[Path]) -> list[TableSource]:
    """The tables of one cluster, as `find`, or of several: by their roots, or by the configurations of their jobs.

    With several roots, a configuration applies to the display of all, but its Kafka cluster only to its own root.

    Raises:
        ConfigError: See `find`; or roots and several configurations are given, or one twice.
    """
    if len(tables) <= 1 and len(configs) <= 1:
        return [find(next(iter(tables), None), next(iter(configs), None))]
    if tables and len(configs) > 1:
        raise ConfigError(
            "several --config name the tables themselves: leave out --tables, or give one --config at most"
        )
    found = list(_shown_alike(tables, configs)) if tables else [find(None, one) for one in configs]
    place, count = Counter(place_of(one.tables.root) for one in found).most_common(1)[0]
    if count > 1:
        raise ConfigError(f"the tables under {place} are named twice: name each cluster once")
    return found


def _shown_alike(tables: Sequence[str], configs: Sequence[Path]) -> Iterator[TableSource]:
    file = next(iter(configs), None) or _path_of(os.environ.get("LAGWISE_CONFIG"))
    settings = load(file) if file else Config()
    strange = settings.model_copy(update={"cluster": ClusterConfig(), "kafka": KafkaConfig()})
    for root in tables:
        is_own = file is not None and place_of(root) == place_of(settings.tables.root)
        yield _source(root, settings if is_own else strange, is_configured=is_own)


def place_of(root: str) -> str:
    """The root of tables as one text, whichever path leads there."""
    folder = folder_of(root)
    return root.rstrip("/") if folder is None else str(folder.resolve())


def find_config(config: Path | None) -> Path:
    """Path of the configuration from option, environment or working directory; it may not exist."""
    return config or _path_of(os.environ.get("LAGWISE_CONFIG")) or Path(DEFAULT_CONFIG)


def _path_of(text: str | None) -> Path | None:
    return Path(text) if text else None


def _source(root: str, config: Config, *, is_configured: bool) -> TableSource:
    tables = Tables(root, resolve(config.tables.storage_options))
    return TableSource(tables=tables, config=config, is_configured=is_configured)


def _in_working_directory() -> Iterator[TableSource]:
    if Path(DEFAULT_CONFIG).is_file():
        settings = load(DEFAULT_CONFIG)
        # A clone always has this file; the folder that it names exists only if the stream ran with it.
        if "://" in settings.tables.root or Path(settings.tables.root).is_dir():
            yield _source(settings.tables.root, settings, is_configured=True)
    if Path(DEMO_TABLES).is_dir():
        yield _source(DEMO_TABLES, Config(), is_configured=False)


def _nowhere() -> TableSource:
    raise ConfigError(
        "no tables found: name their folder with --tables DIR or --config FILE (or LAGWISE_TABLES or "
        "LAGWISE_CONFIG), or create some with `lagwise demo`"
    )
