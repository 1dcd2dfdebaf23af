"""A cluster in tables: many groups, some in trouble, some of which little is known."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pipeline import clock
from pipeline.planning.state import GroupState, to_json
from pipeline.tables.stamp import Stamp
from tests.support.operate.table_world import NOON, World

_STATUSES = ("OK", "OK", "OK", "OK", "OK", "WARN", "STALL", "STOP", "REWIND")
_MEMBERS = 5


def fleet_world(root: Path, *, groups: int, partitions: int) -> World:
    """Tables of so many groups, each with so many partitions; one of their plans waits for approval."""
    world = World(root)
    random = Random(7)
    names = [f"group-{number:03}" for number in range(groups)]
    stamp = Stamp(batch_id=7, at_ms=clock.now_ms())
    world.write(
        "partition_lag",
        *(_partition(random, name, number) for name in names for number in range(partitions)),
        stamp=stamp,
    )
    world.write("consumer_groups", *(_group(name, partitions) for name in names))
    world.write("plan_state", *(_decision(random, name, partitions) for name in names))
    world.write("recommendations", *(_recorded(random, name) for name in names for _ in range(3)))
    world.write("member_rates", *_rates(names))
    world.write("lag_history", *_past(random, names, partitions, clock.at(stamp.at_ms)))
    world.write("orders", {"group_id": names[1], "paused": True, "ordered_by": "eva@desk", "position": 1})
    world.complete()
    return world


def _partition(random: Random, group: str, number: int) -> dict[str, Any]:
    lag = random.choice((None, 0, 3, 70, 1_234, 45_678, 1_234_567))
    seconds = None if lag is None else round(lag / 97, 3)
    status = "UNKNOWN" if lag is None else random.choice(_STATUSES)
    member = number % (_MEMBERS - 1)
    rate = None if random.random() < 0.02 else round(random.random() * 50, 3)
    return {
        "group_id": group,
        "topic": "invoices",
        "partition": number,
        "committed_offset": None if lag is None else 10_000,
        "log_end_offset": None if lag is None else 10_000 + lag,
        "log_observed_at": NOON - timedelta(hours=random.random() < 0.02),
        "lag": lag,
        "lag_seconds": seconds,
        "lag_seconds_is_lower_bound": seconds is not None and seconds > 5_000,
        "status": status,
        "arrival_rate": rate,
        "drain_rate": rate,
        "trend": random.choice((None, "growing", "steady")),
        "retention_seconds": random.choice((None, 600.0, 86_400.0)),
        "provisional": random.random() < 0.01,
        "assigned": True,
        "member_id": f"{group}-m-{member}",
        "client_id": "consumer",
        "client_host": f"/10.0.0.{member}",
    }


def _group(name: str, partitions: int) -> dict[str, Any]:
    members = [
        {
            "member_id": f"{name}-m-{number}",
            "client_id": "consumer",
            "client_host": f"/10.0.0.{number}",
            "assigned": [("invoices", list(range(number, partitions, _MEMBERS - 1)))]
            if number < _MEMBERS - 1
            else [],
        }
        for number in range(_MEMBERS)
    ]
    return {
        "group_id": name,
        "state": "Stable",
        "generation": 4,
        "assignor": "range",
        "rebalance_protocol": "eager",
        "members": members,
    }


def _target(name: str, partitions: int) -> dict[str, Any]:
    """All that the last member is given is the first one's."""
    gives, gets = f"{name}-m-0", f"{name}-m-{_MEMBERS - 1}"
    moved = range(0, partitions, _MEMBERS - 1)
    return {
        "assignment": [
            (
                f"{name}-m-{member}",
                [("invoices", ",".join(map(str, range(member, partitions, _MEMBERS - 1))))],
            )
            for member in range(1, _MEMBERS - 1)
        ]
        + [(gets, [("invoices", ",".join(map(str, moved)))])],
        "moves": [
            {"topic": "invoices", "partition": number, "from": gives, "to": gets, "lag": 5}
            for number in moved
        ],
    }


def _decision(random: Random, name: str, partitions: int) -> dict[str, Any]:
    is_waiting = name.endswith("-000")
    return {
        "group_id": name,
        "decision": "awaiting_approval" if is_waiting else "unchanged",
        "reason": "5 moves save 3 minutes" if is_waiting else "held back by cooldown: 3 s",
        "strategy": "lag-sticky",
        "drain_s_before": 240.5,
        "drain_s_after": random.choice((None, 44.25)),
        "drain_s_bound": 30.0,
        "target_hash": "3f2a",
        "base_hash": "91bc",
        "awaiting_since": NOON if is_waiting else None,
        "valid_until": NOON + timedelta(minutes=10),
        "recorded_at": NOON,
        "state": to_json(GroupState()),
        "plan": {
            "epoch": 6,
            "moves": 3,
            "moves_made": 2,
            "published_at": NOON,
            "status": "partly",
            "predicted_drain_s": 40.5,
            "realised_drain_s": 61.25,
        },
        **_target(name, partitions),
    }


def _recorded(random: Random, name: str) -> dict[str, Any]:
    at = NOON - timedelta(minutes=random.randrange(1, 100), seconds=random.randrange(60))
    decision = random.choice(("publish", "unchanged", "abstain"))
    return {
        "group_id": name,
        "decision": decision,
        "reason": "because of lag",
        "epoch": 5,
        "strategy": "lag-sticky",
        "created_at": at,
        "drain_s_before": random.choice((None, 100.25)),
        "drain_s_after": 50.5,
        **({} if decision == "abstain" else _target(name, 4)),
    }


def _rates(names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "group_id": name,
            "identity": f"client consumer /10.0.0.{number}",
            "rate": 90.0,
            "shown_rate": 100.0,
            "seen_at": NOON,
        }
        for name in names
        for number in range(_MEMBERS)
    ]


def _past(random: Random, names: list[str], partitions: int, end: datetime) -> Iterator[dict[str, Any]]:
    """A row of every partition for every ten minutes, and a gap in which nothing is known."""
    for minutes in (10, 20, 40, 50, 60):
        for name in names:
            for partition in range(partitions):
                lag = random.randrange(5_000)
                yield {
                    "group_id": name,
                    "topic": "invoices",
                    "partition": partition,
                    "lag": lag,
                    "lag_seconds": lag / 97,
                    "updated_at": end - timedelta(minutes=minutes),
                }
