"""Random walks of groups, of partitions that cannot be read, of starts and of batches that are cut short: the history ends
with what the groups are, and no row says what the one before it said.
"""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pipeline.run.batch.groups import store_group_history, store_groups
from tests.support.job.frames import member
from tests.support.job.step_batches import StepBatches

Row = dict[str, Any]

_PARTITIONS = {"g": 3, "h": 3, "k": 7}
_BATCHES = 16


class Walk:
    """Batches of records that are drawn."""

    def __init__(self, root: str, seed: int) -> None:
        self.draw = random.Random(seed)
        self.batches = StepBatches(root, store_group_history, store_groups)
        self.position = 0
        self.generations = dict.fromkeys(_PARTITIONS, 0)

    def step(self) -> tuple[int, ...]:
        """One batch; the partitions that it has left unread."""
        chosen = self.draw.sample(sorted(_PARTITIONS), self.draw.randint(0, 2))
        events = [event for name in chosen for event in self._events(name)]
        behind = tuple(number for number in (3, 7) if self.draw.random() < 0.2)
        if self.draw.random() < 0.15:
            self.batches.restart()
        written: tuple[str, ...] = ()
        if self.draw.random() < 0.1:
            self.batches.run(*events, behind=behind, cut_behind="store_group_history")
            self.batches.restart()
            # The same batch again, or one of another checkpoint.
            written = self.draw.choice([(), ("group_history",)])
        self.batches.run(*events, behind=behind, written=written)
        return behind

    def _events(self, name: str) -> list[Row]:
        common = {"group_id": name, "offsets_partition": _PARTITIONS[name], "members": []}
        kind = self.draw.choice(["classic", "classic", "classic", "consumer", "gone"])
        if kind == "gone":
            gone = common | {"row_kind": "group_tombstone"}
            return [gone | {"group_type": each, "position": self._next()} for each in ("classic", "consumer")]
        self.generations[name] += self.draw.randint(0, 1)
        is_classic = kind == "classic"
        state = {"state": "Stable", "members": self._members()} if is_classic else {"state": None}
        of_record = {"row_kind": "group", "group_type": kind, "position": self._next()}
        return [common | of_record | state | {"generation": self.generations[name]}]

    def _members(self) -> list[Row]:
        names = self.draw.sample("abc", self.draw.randint(0, 3))
        instance = self.draw.choice([None, "i"])
        return [
            member(
                name,
                topics=self.draw.choice([["t"], ["t", "u"]]),
                group_instance_id=instance if name == "a" else None,
            )
            for name in names
        ]

    def _next(self) -> int:
        self.position += 1
        return self.position


def content(row: Row) -> tuple[Any, ...]:
    members = [(one["member_id"], one["group_instance_id"], one["topics"]) for one in row["members"] or ()]
    return row["group_type"], row["generation"], row["state"], sorted(members, key=repr)


def histories(batches: StepBatches) -> dict[str, list[Row]]:
    """Rows by group, oldest first."""
    found: dict[str, list[Row]] = {name: [] for name in _PARTITIONS}
    for row in batches.store.arrow("group_history").sort_by("updated_at").to_pylist():
        found[row["group_id"]].append(row)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_history_is_told_once_and_to_its_end(tmp_path: Path, seed: int) -> None:
    walk = Walk(str(tmp_path), seed)
    for _ in range(_BATCHES):
        behind = walk.step()

        groups = {row["group_id"]: row for row in walk.batches.store.arrow("consumer_groups").to_pylist()}
        for name, rows in histories(walk.batches).items():
            assert [row["why"] == "first_seen" for row in rows] == [True, *[False] * len(rows)][: len(rows)]
            for before, after in pairwise(rows):
                assert (after["why"] == "returned") == (before["why"] == "gone")
                assert content(before) != content(after)
            if _PARTITIONS[name] in behind:
                continue
            if name in groups:
                assert content(rows[-1]) == content(groups[name])
            else:
                assert not rows or rows[-1]["why"] == "gone"
