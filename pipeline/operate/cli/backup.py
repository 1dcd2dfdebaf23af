"""`lagwise backup`: a copy of the tables, for a restore."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.output import progress
from pipeline.tables.upkeep.backup import back_up


def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="New folder for the copy, on this machine.")
    ],
    *,
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy the tables into a new folder while the job runs.

    Example: lagwise backup /backup/lagwise-2026-11-22

    Each table is copied at one version. The reading commands can read the folder (--tables), and a driver starts on it
    after a restore: see deploy/docs/upgrading.md. It has no checkpoint, and needs none.

    The copy has to be complete within tables.retention_hours, after which maintenance removes replaced files.

    Exit status: 0 copied, 1 not copied, 2 wrong usage.
    """
    source = find(tables, config)
    with progress(f"copying the tables under {source.tables.root}"):
        copied = list(back_up(source.tables, folder))
    megabytes = sum(one.bytes_ for one in copied) / 1e6
    typer.echo(f"{len(copied)} tables, {megabytes:.1f} MB, copied to {folder}")
