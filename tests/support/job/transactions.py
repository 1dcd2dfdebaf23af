"""Transaction numbers in a table's log: one for each write, with the term in the high bits and then the batch."""

import json
from itertools import pairwise
from pathlib import Path


def assert_one_owner_after_the_other(folder: Path) -> None:
    """Assert that each number is in the log once, and that none of an earlier term follows one of a later term.

    Args:
        folder: Of a table that maintenance has not cut.
    """
    numbers = _numbers(folder)
    assert numbers
    assert all(before < after for before, after in pairwise(numbers)), numbers


def terms(folder: Path) -> int:
    """Number of owners that have written the table."""
    return len({number >> 32 for number in _numbers(folder)})


def _numbers(folder: Path) -> list[int]:
    """The numbers, in the order of the table's versions."""
    actions = [
        json.loads(line)
        for file in sorted((folder / "_delta_log").glob("[0-9]*.json"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    written = [action["txn"] for action in actions if "txn" in action]
    return [one["version"] for one in written if one["appId"] == "lagwise"]
