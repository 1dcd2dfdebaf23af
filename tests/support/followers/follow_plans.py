"""Plans and control records for tests of followers."""

from collections.abc import Iterable, Iterator, Mapping
from random import Random

from assignor.protocol import control
from assignor.protocol.control import ControlMember, ControlMove, ControlReasons, ControlRecord
from assignor.protocol.migration import Migration

CLUSTER = "local"
GROUP = "billing"
Places = Mapping[str, Iterable[int]]
"""Partitions of the one topic, by member id."""


def plan(
    base: Places,
    target: Places,
    *,
    epoch: int = 1,
    generation: int = 1,
    topic: str = "t",
    cluster: str = CLUSTER,
    group: str = GROUP,
    dry_run: bool = False,
    migration: Migration = "disabled",
    valid_until_ms: int = 4_000_000_000_000,
) -> ControlRecord:
    """A plan for members over one topic."""
    return ControlRecord(
        cluster=cluster,
        group=group,
        epoch=epoch,
        strategy="by hand",
        dry_run=dry_run,
        created_at_ms=0,
        valid_until_ms=valid_until_ms,
        base_generation=generation,
        base_protocol="range",
        migration=migration,
        members={
            name: ControlMember(
                instance=None,
                client=name,
                host="/127.0.0.1",
                base={topic: tuple(sorted(base.get(name, ())))},
                target={topic: tuple(sorted(target.get(name, ())))},
            )
            for name in sorted({*base, *target})
        },
        moves=tuple(_moves(base, target, topic)),
        unassigned={},
        why=ControlReasons(drain_s_before=None, drain_s_after=None, drain_s_bound=None, lag=0),
    )


def _moves(base: Places, target: Places, topic: str) -> Iterator[ControlMove]:
    before, after = _owners(base), _owners(target)
    for partition in sorted({*before, *after}):
        old_owner, new_owner = before.get(partition), after.get(partition)
        if old_owner != new_owner:
            yield ControlMove(topic=topic, partition=partition, from_member=old_owner, to_member=new_owner)


def _owners(places: Places) -> Mapping[int, str]:
    return {partition: name for name, partitions in places.items() for partition in partitions}


def at_random(members: Iterable[str], partitions: int, random: Random) -> dict[str, list[int]]:
    """A target that gives each partition to any of the members."""
    target: dict[str, list[int]] = {member: [] for member in sorted(members)}
    for partition in range(partitions):
        target[random.choice(sorted(target))].append(partition)
    return target


def one_moved(base: Mapping[str, list[int]], old_owner: str, new_owner: str) -> dict[str, list[int]]:
    """A target that moves one partition from the old owner to the new one."""
    place = base[old_owner][0]
    return {**base, old_owner: base[old_owner][1:], new_owner: sorted([*base[new_owner], place])}


def key_of(record: ControlRecord) -> bytes:
    return control.encode_key(record.cluster, record.group)
