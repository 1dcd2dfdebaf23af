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
    """Findings about a group, or about all groups and the job, each after those that explain it; Kafka's too.

    The age of the tables comes first if the tables are old, or if the diagnosis is for one group; otherwise the groups
    in trouble come first.

    Raises:
        StoreError: A table cannot be read, for another reason than missing files.
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
    """Return the findings about the group from the tables alone."""
    for question in (listed, planned, followed, behind, reconciling):
        yield from question(group)
