"""Spark's event log as tests read it: one plain file for each application."""

from pathlib import Path

_LINES = """\
"spark.eventLog.enabled" = "true"
"spark.eventLog.compress" = "false"
"spark.eventLog.rolling.enabled" = "false"
"spark.eventLog.dir" = "{folder}"
"""


def event_log(folder: Path) -> str:
    """Lines of TOML, below `[spark]`, that have it written to the folder."""
    return _LINES.format(folder=folder.as_uri())
