"""A state in which everything happens at once, folded by arrays and by the rules read row by row."""

import random
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from pipeline.fold.commits import fold_commits
from pipeline.fold.control_messages import handed_over
from pipeline.fold.owners import OWNER, held_partitions
from tests.support.job.frames import NOW_MS, arrow, at, decoded_rows, member

GROUPS, TOPICS, PARTITIONS, OFFSETS_PARTITIONS = ("g", "h", "i"), ("t", "u", "gone"), range(12), (1, 2, None)
PLACES = tuple(product(GROUPS, TOPICS, PARTITIONS))
OF_COMMIT = ("committed_offset", "leader_epoch", "commit_topic_id", "commit_timestamp", "commit_position")
Row = dict[str, Any]
Place = tuple[str, str, int]


def place_of(row: Mapping[str, Any]) -> Place:
    return row["group_id"], row["topic"], row["partition"]


def lag_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "committed_offset": committed,
            "commit_position": None if committed is None else dice.randint(1, 20),
            "commit_timestamp": None if committed is None else at(-20),
            "commit_topic_id": dice.choice((None, "A")),
            "leader_epoch": dice.choice((None, 3)),
            "offsets_partition": dice.choice(OFFSETS_PARTITIONS),
            "confirmed": dice.random() < 0.7,
        }
        for group, topic, partition in PLACES
        for committed in (dice.choice((None, 10, 40, 130)),)
        if dice.random() < 0.6
    ]


def events(dice: random.Random) -> list[Row]:
    return [
        {
            "row_kind": kind,
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "offsets_partition": dice.choice((1, 2)),
            "position": position,
            "committed_offset": position * 5 if kind == "commit" else None,
            "commit_timestamp_ms": NOW_MS - 500 if kind == "commit" else None,
            "topic_id": dice.choice(("A", None)) if kind == "commit" else None,
            "leader_epoch": None,
        }
        for position, (group, topic, partition) in enumerate(dice.choices(PLACES, k=90))
        for kind in (dice.choice(("commit", "commit", "tombstone")),)
    ]


def group_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "group_id": group,
            "generation": 4,
            "offsets_partition": dice.choice((1, 2)),
            "members": [
                member(
                    name,
                    client_id=f"c-{name}",
                    assigned={topic: dice.sample(PARTITIONS, dice.randint(0, 5)) for topic in TOPICS},
                )
                for name in dice.sample(("b", "a", "c"), 2)
            ],
        }
        for group in GROUPS[:2]
    ]


def ack_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "kind": kind,
            "id": "x",
            "group_id": group,
            "generation": generation,
            "epoch": 1,
            "topic": "t",
            "member_id": who,
            "hop": hop,
            "partition": partition,
            "position": hop,
            "acked_at": at(0),
        }
        for partition in PARTITIONS
        for group in GROUPS
        for hop in range(dice.randint(0, 3))
        for kind, who, generation in (
            (dice.choice(("release", "taken")), dice.choice(("a", "b", "x")), dice.choice((4, 4, 4, 3))),
        )
    ]


def owners_by_the_rules(groups: Iterable[Row], moved: Iterable[Row]) -> dict[Place, Row]:
    members: dict[tuple[str, str], Row] = {}
    owners: dict[Place, Row] = {}
    for group in groups:
        for one in sorted(group["members"], key=lambda one: str(one["member_id"])):
            owner = {name: (one | group)[name] for name in OWNER}
            members[group["group_id"], one["member_id"]] = owner
            for topic, numbers in one["assigned"].items():
                for number in numbers:
                    owners.setdefault((group["group_id"], topic, number), owner)
    for one in moved:
        taker = members.get((one["group_id"], one["member_id"]))
        if place_of(one) in owners and taker:
            owners[place_of(one)] = taker
        else:
            owners.pop(place_of(one), None)
    return owners


def folded_by_the_rules(
    old: Row | None, new: Row | None, owner: Row | None, reread: tuple[int, ...], behind: tuple[int, ...]
) -> Row | None:
    before = old or dict.fromkeys((*OF_COMMIT, "offsets_partition", "confirmed"))
    number = before["offsets_partition"]
    stays = bool(before["confirmed"]) and not (reread and (number is None or number in reread))
    is_newer = new is not None and (
        before["commit_position"] is None
        or not stays
        or (number is not None and number != new["offsets_partition"])
        or new["position"] > before["commit_position"]
    )
    commit = {name: before[name] for name in OF_COMMIT}
    if new is not None and is_newer:
        is_commit = new["row_kind"] == "commit"
        commit = {
            "committed_offset": new["committed_offset"],
            "leader_epoch": new["leader_epoch"],
            "commit_topic_id": new["topic_id"],
            "commit_timestamp": at(-0.5) if is_commit else None,
            "commit_position": new["position"],
        }
    known = [one["offsets_partition"] for one in (new, old, owner) if one]
    partition = next((number for number in known if number is not None), None)
    confirmed = new is not None or stays or old is None
    holds = confirmed or partition in behind or (bool(behind) and partition is None)
    if not holds:
        commit = dict.fromkeys(OF_COMMIT)
    if commit["committed_offset"] is None and owner is None:
        return None
    return {
        **commit,
        "offsets_partition": partition,
        "has_new_commit": is_newer and new is not None and new["row_kind"] == "commit",
        "is_reread": is_newer and old is not None and not stays,
        "confirmed": confirmed or not holds,
        "had_row": old is not None,
        "owner": owner,
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("reread", "behind"), [((), ()), ((1,), (1,)), ((1,), ()), ((), (2,))])
def test_arrays_fold_as_the_rules_say(reread: tuple[int, ...], behind: tuple[int, ...], seed: int) -> None:
    dice = random.Random(f"{reread}{behind}{seed}")
    lags, new, groups = lag_rows(dice), events(dice), group_rows(dice)
    known = arrow("consumer_groups", *groups)
    moved = handed_over(arrow("acks", *ack_rows(dice)), known)

    table = fold_commits(
        arrow("partition_lag", *lags),
        decoded_rows(*new).newest().kind("commit", "tombstone"),
        held_partitions(known, moved, pa.array(TOPICS)),
        reread=reread,
        behind=behind,
    )

    owners = owners_by_the_rules(groups, moved.to_pylist())
    old = {place_of(row): row for row in lags}
    # Positions rise, so the last of a partition is the newest.
    newest = {place_of(row): row for row in new}
    expected = {
        place: row
        for place in PLACES
        if (row := folded_by_the_rules(old.get(place), newest.get(place), owners.get(place), reread, behind))
    }
    folded = {
        place_of(row): {name: row[name] for name in (*OF_COMMIT, "offsets_partition", "has_new_commit")}
        | {name: row[name] for name in ("is_reread", "confirmed", "owner")}
        | {"had_row": row["old"] is not None}
        for row in table.to_pylist()
    }
    assert folded == expected
    assert moved.num_rows > 3
    assert table.num_rows > 40
    assert len(folded) == table.num_rows
