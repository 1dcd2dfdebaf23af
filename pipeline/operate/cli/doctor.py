"""`lagwise doctor`: why a group is not listed, not planned, not followed or behind."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Annotated

import typer

from pipeline.operate.cli.locations import ConfigOption, TablesOption, find
from pipeline.operate.doctor.diagnosis import diagnose
from pipeline.operate.doctor.evidence import read_stream
from pipeline.operate.doctor.finding import Finding
from pipeline.operate.output import Column, FormatOption, note, plain, progress, show, span_text

_NOT_JUDGED = 3
_COLUMNS = tuple(
    Column(header=name.upper(), name=name)
    for name in ("group_id", "question", "level", "cause", "object", "todo", "source", "as_of", "age_s")
)


def doctor(
    group: Annotated[
        str | None,
        typer.Argument(metavar="GROUP", help="Consumer group; default: all of them, and the job."),
    ] = None,
    *,
    output: FormatOption = "table",
    tables: TablesOption = None,
    config: ConfigOption = None,
) -> None:
    """Why a group is behind, not listed, not planned or followed.

    Example: lagwise doctor billing

    Without GROUP it lists the groups in trouble; the one whose oldest unread record waits longest comes first.

    It reads the tables, and asks Kafka if the stream's configuration is known. Each finding says how old its figures
    are, and what to do.

    Exit status: 0 nothing is wrong, 1 something is, or the tables cannot be read, 2 wrong usage, 3 nothing is known to
    be wrong, but something could not be judged.
    """
    source = find(tables, config)
    now = datetime.now(tz=timezone.utc)
    with progress("reading the tables, and asking Kafka"):
        stream = read_stream(source.tables, source.config, is_configured=source.is_configured, now=now)
        findings = diagnose(stream, group)
    if output == "table":
        typer.echo("\n".join(line for found in findings for line in _lines(found, now)))
    else:
        rows = [{**asdict(found), "group_id": group, "age_s": _age_s(found, now)} for found in findings]
        show(rows, _COLUMNS, output=output)
    _tell(findings)


def _tell(findings: Sequence[Finding]) -> None:
    """Summarise the findings in a line, and exit with their status."""
    levels = [found.level for found in findings]
    counts = {level: levels.count(level) for level in ("problem", "unknown")}
    note(f"{counts['problem']} problem(s), {counts['unknown']} unknown")
    if counts["problem"]:
        raise typer.Exit(1)
    if counts["unknown"]:
        raise typer.Exit(_NOT_JUDGED)


def _age_s(found: Finding, now: datetime) -> float | None:
    return None if found.as_of is None else round((now - found.as_of).total_seconds(), 3)


def _lines(found: Finding, now: datetime) -> list[str]:
    """A finding as text: level, question, cause and age, and below them what to do."""
    indent = " " * 18
    lines = [f"{found.level:<8} {found.question:<8} {plain(found.cause)}  [{_age(found, now)}]"]
    return [*lines, f"{indent}do: {plain(found.todo)}"] if found.todo else lines


def _age(found: Finding, now: datetime) -> str:
    age_s = _age_s(found, now)
    if age_s is None:
        return (
            found.source if found.source in {"configuration", "brokers"} else f"{found.source}, age unknown"
        )
    if found.source == "brokers":
        return "brokers, now"
    return f"{found.source}, {span_text(max(age_s, 0.0))} ago"
