"""Diagnosis: all findings about a group, or about the job, the age of the tables first."""

from collections.abc import Iterator

from pipeline.operate.doctor.behind import behind
from pipeline.operate.doctor.brokers import ask
from pipeline.operate.doctor.evidence import GroupEvidence, StreamEvidence, read_group
from pipeline.operate.doctor.finding import Finding
from pipeline.operate.doctor.followed import followed
from pipeline.operate.doctor.job import job
from pipeline.operate.doctor.listed import listed
from pipeline.operate.doctor.planned import planned
from pipeline.operate.doctor.stream import tables_age


def diagnose(stream: StreamEvidence, group_id: str | None) -> Iterator[Finding]:
    """Findings in the order in which they explain one another, those of Kafka included.

    Args:
        stream: What the newest batch said of itself.
        group_id: The group; None for the job.

    Raises:
        StoreError: A table cannot be read.
    """
    group = None if group_id is None else read_group(stream, group_id)
    yield from tables_age(stream)
    yield from ask(stream, group)
    yield from job(stream) if group is None else by_tables(group)


def by_tables(group: GroupEvidence) -> Iterator[Finding]:
    """What the tables alone say of the group."""
    for question in (listed, planned, followed, behind):
        yield from question(group)
