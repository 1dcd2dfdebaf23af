"""How much work is worth a task of its own: the jobs of a batch are cut by it, and predictions count by it. Pure."""

from collections.abc import Mapping

from pipeline.placement import placed
from pipeline.row_ranges import Ranges, ranges_of

_MOST_ROWS = 250_000
"""Stored rows that, with what is made of them, take a worker about 1 GB."""
_LEAST_ROWS = 50_000
"""To open the tables and to make a file takes longer than to fold fewer."""
_LEAST_PARTITIONS = 2_000
"""To start another task takes longer than to decide about fewer."""


def folding(key: str, rows: Mapping[str, int], *, cores: int) -> Ranges:
    """The ranges of a table that tasks fold, one each.

    Args:
        key: Column by which the table is cut.
        rows: By value of the column: about how many rows there are.
        cores: Tasks that run at once.
    """
    tasks = min(cores, sum(rows.values()) // _LEAST_ROWS)
    return ranges_of(key, rows, at_least=tasks, most_rows=_MOST_ROWS)


def deciding(partitions: Mapping[str, int], *, cores: int) -> list[list[str]]:
    """The groups about which each task decides.

    Args:
        partitions: By group, of at least one.
        cores: Tasks that run at once.
    """
    tasks = min(cores, 1 + sum(partitions.values()) // _LEAST_PARTITIONS, len(partitions))
    # A group without commits takes time, too.
    return placed(sorted(partitions), lambda group: partitions[group] + 1, tasks=tasks)
