"""Source: divides a batch into parts, one for each task of Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from pyspark.sql.datasource import InputPartition

from pipeline.kafka.positions import Span, shares
from pipeline.kafka.sources.groups import listing
from pipeline.kafka.sources.groups.settings import GroupShare, Listing, shared_out
from pipeline.kafka.sources.log_offsets import ask
from pipeline.kafka.sources.log_offsets.settings import Share
from pipeline.source.deadline import within
from pipeline.source.offset import Json, from_json
from pipeline.source.planner import STORAGE_ERRORS, Planner, unreadable
from pipeline.source.settings import SourceSettings

# A task takes a round trip to two Python workers, and its consumer has to connect if they are new.
RECORDS_A_TASK = 50_000
_FEW_RECORDS, _FEW_PARTITIONS = 5_000, 1_000
"""One task reads this many records and asks for this many log ends faster than a second task starts."""


@dataclass(frozen=True)
class Part(InputPartition):
    """The share of a batch that one task reads."""

    offset: Json | None = None
    """Offset of the batch; one of its tasks passes it to the driver."""
    spans: tuple[Span, ...] = ()
    listing: Listing | None = None
    """All groups; one of the tasks passes them on."""
    groups: GroupShare | None = None
    """Groups that the task asks about."""
    share: Share | None = None
    """Partitions whose log ends the task asks for, after it has read records and asked about groups."""


def parts_of(given: Json, planner: Planner, settings: SourceSettings) -> list[Part]:
    """Split the batch into parts; the first one carries the offset.

    A repeated batch reads at most what it has read before, and asks for no log ends, because they are stored. If the
    tables do not show whether the batch ran, its tasks read nothing and tell the driver why.
    """
    try:
        return [*_parts(given, planner, settings)]
    except STORAGE_ERRORS as error:
        return [Part(offset=given | {"failure": unreadable(error)})]


def _parts(given: Json, planner: Planner, settings: SourceSettings) -> Iterator[Part]:
    offset = from_json(given)
    if offset is None or offset.failure is not None:
        yield Part(offset=given)
        return
    with within(settings.choosing_s):
        stamp = planner.begun(offset)
        spans = offset.intake.spans if stamp is None else stamp.spans
        tasks = planner.parallelism()
        wanted = tuple(span for span in spans if span.start < span.end)
        first, *others = shares(wanted, tasks=tasks, records_a_task=RECORDS_A_TASK) if wanted else [[]]
        asked = ask.shares(settings.of_log_ends, tasks=tasks) if stamp is None else []
        part = Part(offset=given, spans=tuple(first))
        if settings.most_group_requests:
            # The client may crash the process of a task that asks about groups, so other tasks read the records.
            yield part
            yield from (Part(spans=tuple(share)) for share in others)
            yield from _asking(planner, settings, asked, tasks=tasks, tick=offset.tick)
            return
        if _are_few(wanted, asked):
            yield replace(part, share=asked[0])
            return
        yield part
        yield from (Part(spans=tuple(share)) for share in others)
        yield from (Part(share=share) for share in asked)


def _asking(
    planner: Planner, settings: SourceSettings, ends: Sequence[Share], *, tasks: int, tick: int
) -> Iterator[Part]:
    """Parts that ask about groups and then for log ends; none if the batch is repeated.

    Args:
        planner: Planner of the batch.
        settings: Settings of the source.
        ends: Partitions whose log ends are needed.
        tasks: Number of tasks that run at once.
        tick: Tick of the batch.
    """
    if not ends:
        return
    found = listing.listed(settings.of_groups)
    if found.error is None:
        planner.unreadable = {one.group_id for one in found.groups if not one.is_readable}
    else:
        found = listing.completed(
            found,
            others=planner.of_unknown_type(),
            unreadable=planner.unreadable,
            wanted=settings.of_groups.wanted,
        )
    quiet = planner.quiet(tick)
    due = [group for group in found.groups if group.group_id not in quiet]
    shares = shared_out(
        due, tasks=tasks, at_once=settings.most_group_requests, doubtful=planner.doubtful(), tick=tick
    )
    first, *others = zip_longest(shares, ends)
    yield Part(listing=found, groups=first[0], share=first[1])
    yield from (Part(groups=groups, share=share) for groups, share in others)


def _are_few(spans: Sequence[Span], asked: Sequence[Share]) -> bool:
    """Return whether a single task reads and asks for everything."""
    if len(asked) != 1 or sum(span.end - span.start for span in spans) > _FEW_RECORDS:
        return False
    return sum(len(numbers) for _, numbers in asked[0].topics) <= _FEW_PARTITIONS
