"""Kafka's own `ConsumerGroupCommand`, the oracle of what a group's lag is, read into rows.

Every table of the tool is aligned to the left under its heading, so columns are cut where the headings start. A
dash is null.
"""

import os
import re
import subprocess
from dataclasses import dataclass

from pipeline.local import class_data
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve
from pipeline.local.java import find_java

_TOOLS = "org.apache.kafka:kafka-tools:4.2.0"
# The tools jar serves Connect and a plugin checker too; the group command needs nothing of theirs.
_FOR_OTHER_TOOLS = ("connect-api", "connect-json", "connect-runtime", "connect-transforms", "maven-artifact")
_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
# Headings such as `COORDINATOR (ID)` have one space inside.
_HEADING = re.compile(r"\S+(?: \(\S+\))?")
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class OffsetRow:
    """One line of `--describe`: a partition that is committed, assigned, or both."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    host: str | None
    client_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MemberRow:
    """One line of `--describe --members --verbose`."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    host: str
    client_id: str
    partitions: int
    assignment: str | None
    member_epoch: int | None = None
    """Of a KIP-848 group, as the two that follow."""
    target_epoch: int | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class StateRow:
    """One line of `--describe --state --verbose`."""

    group_id: str
    assignor: str | None
    state: str
    members: int
    group_epoch: int | None = None
    """Of a KIP-848 group, as the next."""
    target_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ListedGroup:
    """One line of `--list --state --type`."""

    group_id: str
    group_type: str
    state: str


def describe_offsets(bootstrap: str) -> tuple[OffsetRow, ...]:
    """Every partition of every group, sorted by group, topic, partition."""
    rows = [
        OffsetRow(
            group_id=row["GROUP"],
            topic=row["TOPIC"],
            partition=int(row["PARTITION"]),
            committed_offset=_number(row["CURRENT-OFFSET"]),
            log_end_offset=_number(row["LOG-END-OFFSET"]),
            lag=_number(row["LAG"]),
            member_id=_text(row["CONSUMER-ID"]),
            host=_text(row["HOST"]),
            client_id=_text(row["CLIENT-ID"]),
        )
        for row in _tables(_run(bootstrap, "--describe", "--all-groups", "--offsets"))
        # A group without a commit and without a member is one line of dashes.
        if _text(row["TOPIC"]) is not None
    ]
    return tuple(sorted(rows, key=lambda row: (row.group_id, row.topic, row.partition)))


def describe_members(bootstrap: str) -> tuple[MemberRow, ...]:
    """Every member of every group, sorted by group and member id."""
    rows = [
        MemberRow(
            group_id=row["GROUP"],
            member_id=row["CONSUMER-ID"],
            group_instance_id=_text(row.get("GROUP-INSTANCE-ID", "-")),
            host=row["HOST"],
            client_id=row["CLIENT-ID"],
            partitions=int(row["#PARTITIONS"]),
            assignment=_text(row["CURRENT-ASSIGNMENT"]),
            member_epoch=_number(row.get("CURRENT-EPOCH", "-")),
            target_epoch=_number(row.get("TARGET-EPOCH", "-")),
            target=_text(row.get("TARGET-ASSIGNMENT", "-")),
        )
        for row in _tables(_run(bootstrap, "--describe", "--all-groups", "--members", "--verbose"))
    ]
    return tuple(sorted(rows, key=lambda row: (row.group_id, row.member_id)))


def describe_states(bootstrap: str) -> tuple[StateRow, ...]:
    """State of every group, sorted by group."""
    rows = [
        StateRow(
            group_id=row["GROUP"],
            assignor=_text(row["ASSIGNMENT-STRATEGY"]),
            state=row["STATE"],
            members=int(row["#MEMBERS"]),
            group_epoch=_number(row.get("GROUP-EPOCH", "-")),
            target_epoch=_number(row.get("TARGET-ASSIGNMENT-EPOCH", "-")),
        )
        for row in _tables(_run(bootstrap, "--describe", "--all-groups", "--state", "--verbose"))
    ]
    return tuple(sorted(rows, key=lambda row: row.group_id))


def list_groups(bootstrap: str) -> tuple[ListedGroup, ...]:
    """Type and state of every group, sorted by group."""
    rows = [
        ListedGroup(group_id=row["GROUP"], group_type=row["TYPE"], state=row["STATE"])
        for row in _tables(_run(bootstrap, "--list", "--state", "--type"))
    ]
    return tuple(sorted(rows))


def java_of_tools() -> list[str]:
    """The beginning of a command line: Java with the class path of Kafka's command line tools.

    The broker's jars come first, so that the tools start from the archive of their classes.
    """
    of_broker = resolve(KAFKA)
    names = {jar.name for jar in of_broker}
    others = (jar for jar in resolve((*KAFKA, _TOOLS), excludes=_FOR_OTHER_TOOLS) if jar.name not in names)
    shared = class_data.use(class_data.archive("kafka", of_broker))
    return [str(find_java()), *shared, "-cp", os.pathsep.join(map(str, (*of_broker, *others)))]


def _run(bootstrap: str, *arguments: str) -> str:
    command = [*java_of_tools(), "-XX:TieredStopAtLevel=1", _COMMAND]
    done = subprocess.run(
        [*command, "--bootstrap-server", bootstrap, *arguments],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _tables(text: str) -> list[dict[str, str]]:
    """The rows of all tables, each as heading to cell."""
    rows: list[dict[str, str]] = []
    headings: list[tuple[str, int]] = []
    for line in text.splitlines():
        if line.startswith("GROUP "):
            headings = [(match[0], match.start()) for match in _HEADING.finditer(line)]
        elif line.strip() and headings:
            ends = [start for _, start in headings[1:]] + [len(line)]
            rows.append({name: line[a:b].strip() for (name, a), b in zip(headings, ends, strict=True)})
    return rows


def _text(cell: str) -> str | None:
    return None if cell in ("", "-") else cell


def _number(cell: str) -> int | None:
    return None if cell == "-" else int(cell)
