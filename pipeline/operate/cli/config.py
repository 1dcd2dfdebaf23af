"""`lagwise config check`: the effective configuration and its risks."""

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.config import capacity
from pipeline.config.advice import warnings
from pipeline.config.capacity import MEASURED, Cluster
from pipeline.config.cluster_times import GROUP_ROWS, MEASURED_COSTS, groups_of, predicted
from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.config.places import check_places
from pipeline.config.secret_values import masked
from pipeline.errors import ConfigError
from pipeline.operate.cli.locations import find_config
from pipeline.operate.output import note

config = typer.Typer(no_args_is_help=True, add_completion=False, help="Check a configuration.")

# Tables of arbitrary properties, which may hold secrets.
_FREE_TABLES = (("kafka", "properties"), ("kafka", "java"), ("tables", "storage_options"), ("spark",))


@config.command()
def check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Configuration; default LAGWISE_CONFIG, else conf/lagwise.toml."),
    ] = None,
    *,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Partitions that groups read, counted once for each group; prints their requirements.",
        ),
    ] = None,
    logs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Partitions of topics; by default a third of --partitions."),
    ] = None,
    commits: Annotated[
        float, typer.Option(metavar="RATE", min=0, help="Commits/s of all groups.", show_default=False)
    ] = 0.0,
    cores: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=1000,
            help="Cores of all executors of a Spark cluster; predicts a batch on them.",
        ),
    ] = None,
    largest: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=f"Partitions of the largest group, which one task folds; for --cores, by default {GROUP_ROWS}.",
        ),
    ] = None,
) -> None:
    """Print the effective configuration and its capacity.

    Example: lagwise config check --partitions 300000 --commits 60000

    The output is TOML with defaults filled in and secrets masked. Comments in it state the capacity, computed from
    figures measured on two cores. With --cores they also predict a batch on that many cores of a Spark cluster, from
    tasks measured on one core.

    Warnings and the verdict go to stderr, last. The command connects to nothing.

    Exit status: 0 the configuration can be used, 1 it cannot (`lagwise run` would refuse it), 2 wrong usage.
    """
    path = find_config(file)
    loaded = load(path)
    # Only the start of the driver decides whether executors get the code.
    check_places(loaded.tables, master=loaded.spark.get("spark.master", "local[*]"), ships_code=True)
    _check_properties(loaded)
    asked = _asked(partitions, logs, commits)
    _check_largest(largest, cores)
    typer.echo("\n".join(_toml(_effective(loaded))).strip())
    sizes = asked or [_cluster(size.rows, None, 0) for size in MEASURED]
    typer.echo(_reckoned(loaded, sizes))
    if cores is not None:
        typer.echo(_predicted(sizes, cores, largest or GROUP_ROWS))
    found = (*warnings(loaded), *(line for one in asked for line in capacity.warnings(loaded, one)))
    for warning in found:
        note(f"warning: {warning}")
    note(f"{path} can be used" + (f", with {len(found)} warning(s)" if found else " as it is"))


def _check_properties(loaded: Config) -> None:
    if find_spec("confluent_kafka") is None:
        # Where only tables are read.
        return
    from pipeline.kafka.client import refused_property, unresolved  # noqa: PLC0415 - an extra, which may be missing

    if why := refused_property(unresolved(loaded)):
        raise ConfigError(f"kafka.properties: {why}")


def _effective(loaded: Config) -> dict[str, Any]:
    """All effective settings, with secrets masked."""
    settings = loaded.model_dump(exclude_none=True)
    for *outer, name in _FREE_TABLES:
        table = settings[outer[0]] if outer else settings
        table[name] = masked(table[name])
    for rule, printed in zip(loaded.plan.groups, settings["plan"]["groups"], strict=True):
        printed["guards"] = loaded.plan.guards_of(rule).model_dump(exclude_none=True)
    return settings


def _asked(partitions: int | None, logs: int | None, commits: float) -> list[Cluster]:
    """The cluster of the options, if they name one."""
    size = partitions or logs
    if size is not None:
        return [_cluster(size, logs, commits)]
    if commits:
        raise typer.BadParameter("needs --partitions: the more there are, the fewer commits/s")
    return []


def _check_largest(largest: int | None, cores: int | None) -> None:
    if largest is None:
        return
    if cores is None:
        raise typer.BadParameter("--largest needs --cores: without them nothing is predicted")
    if largest < GROUP_ROWS:
        raise typer.BadParameter(
            f"--largest {largest}: the other groups count as {GROUP_ROWS} partitions each, as they were "
            f"measured; give {GROUP_ROWS} or more, or leave it out"
        )


def _cluster(partitions: int, logs: int | None, commits: float) -> Cluster:
    return Cluster(partitions=partitions, logs=logs or -(-partitions // 3), commits_per_s=commits)


def _reckoned(loaded: Config, clusters: Iterable[Cluster]) -> str:
    """TOML comments on the costs, by size of the cluster."""
    lines = [
        "",
        "# Requirements by partitions of groups and of topics. Computed from figures measured on two cores, at",
        "# 10,000, 100,000 and 1,000,000; not measured with this configuration (deploy/docs/performance.md).",
    ]
    for one in clusters:
        takes = capacity.capacity(loaded, one)
        batch = f"a batch {takes.plain_batch_s:.1f} s, with plans {takes.batch_s:.1f} s"
        lines.append(
            f"# {one.partitions:,} and {one.logs:,}: {batch}, up to {takes.commits_per_s:,.0f} commits/s;"
        )
        lines.append(
            f"#   log offsets in {takes.log_offsets_s:.1f} s; {takes.memory_gb:.1f} GB of memory; on disk "
            f"{takes.latest_gb:.1f} GB, and {takes.history_gb_a_day:.1f} GB of history a day"
        )
    return "\n".join(lines)


def _predicted(clusters: Iterable[Cluster], cores: int, largest: int) -> str:
    """TOML comments on the gain of executors, by size of the cluster."""
    lines = [
        "",
        f"# Prediction for {cores} cores of a Spark cluster, from tasks measured on one core, for batches",
        "# with a new commit of every partition and plans for all groups, log offsets apart (deploying-spark.md).",
    ]
    for one in clusters:
        groups = groups_of(one.partitions, largest=largest)
        times, of_one = (predicted(groups, cores=number, costs=MEASURED_COSTS) for number in (cores, 1))
        lines.append(
            f"# {one.partitions:,}: {times.batch_s:.1f} s, with one core {of_one.batch_s:.1f} s; the driver's own "
            f"{times.driver_s:.1f} s stay, whatever the cores"
        )
    return "\n".join(lines)


def _toml(table: Mapping[str, Any], name: str = "", heading: str = "") -> Iterator[str]:
    """`table` as TOML lines: its own keys first, or they would belong to the previous table."""
    if heading:
        yield f"\n{heading}"
    for key, value in table.items():
        if not _is_table(value):
            # JSON's strings, numbers, booleans and arrays are valid in TOML.
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
