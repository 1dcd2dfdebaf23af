"""Diagnosis: all findings about a group, or about all groups and the job."""

from collections.abc import Iterator

from pipeline.errors import StoreError
from pipeline.operate.doctor.behind import behind
from pipeline.operate.doctor.brokers import ask
from pipeline.operate.doctor.evidence import GroupEvidence, StreamEvidence, read_group
from pipeline.operate.doctor.files import gone_files
from pipeline.operate.doctor.finding import Finding
from pipeline.operate.doctor.followed import followed
from pipeline.operate.doctor.job import job
from pipeline.operate.doctor.listed import listed
from pipeline.operate.doctor.planned import planned
from pipeline.operate.doctor.reconciling import reconciling
from pipeline.operate.doctor.stream import tables_age
from pipeline.operate.doctor.trouble import trouble


def diagnose(stream: StreamEvidence, group_id: str | None) -> list[Finding]:
    """Findings in the order in which they explain one another, those of Kafka included.

    The age of the tables comes first where it says that nothing below is of now, or where it is about one group;
    else the groups in trouble.

    Args:
        stream: What the newest batch reported.
        group_id: The group; None for all groups and the job.

    Raises:
        StoreError: A table cannot be read, and that is not because its files are gone.
    """
    age, gone = list(tables_age(stream)), list(gone_files(stream))
    try:
        if group_id is not None:
            group = read_group(stream, group_id)
            return [*age, *gone, *ask(stream, group), *by_tables(group)]
        groups = list(trouble(stream))
        is_old = any(found.level in {"problem", "unknown"} for found in age)
        first = [*age, *groups] if is_old else [*groups, *age]
        return [*gone, *first, *ask(stream, None), *job(stream)]
    except StoreError:
        if not gone:
            raise
        return [*gone, *age]


def by_tables(group: GroupEvidence) -> Iterator[Finding]:
    """What the tables alone say of the group."""
    for question in (listed, planned, followed, behind, reconciling):
        yield from question(group)
