"""Coordinators' answers to a batch, where commits come from them: which groups answered, and which are gone."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.asked import NOBODY, Asked
from pipeline.kafka.asking import UNASKABLE, can_be_asked
from pipeline.kafka.descriptions import UNREADABLE
from pipeline.kafka.ghosts import Committed
from pipeline.kafka.positions import PartitionKey
from pipeline.row_keys import LAG_KEY, codes
from pipeline.run.batch.intake import Settled

_UNLISTED = "no broker lists the group any more; its coordinator is asked whether it was deleted"


def is_whole(batch: Settled) -> bool:
    """Return whether every group was listed and answered; True if commits come from the offsets topic.

    Leaves out groups about which the client cannot be asked, now or later.
    """
    if not batch.services.config.source.asks_groups:
        return True
    listings, errors = _listings(batch)["error"].to_pylist(), _of_kind(batch, "asked")["error"].to_pylist()
    lasting = (UNASKABLE, UNREADABLE)
    return (
        bool(listings) and not any(listings) and all(one is None or one.startswith(lasting) for one in errors)
    )


def asked_groups(batch: Settled) -> tuple[tuple[str, ...], Asked]:
    """Return the stored groups to leave out, and the coordinators' answers.

    Groups to leave out are unwanted, or are on no broker's list and unknown to their coordinators. A repeated batch
    asks no coordinator.
    """
    if batch.is_replay:
        return (), NOBODY
    unlisted, why = _unlisted(batch)
    gone = _gone(batch, unlisted, is_listing_whole=why is None)
    rows = _of_kind(batch, "asked")
    is_answered = pc.is_null(rows["error"])
    silent = rows.filter(pc.invert(is_answered)).select(["group_id", "error"]).to_pylist()
    return gone, Asked(
        answered=rows.filter(is_answered)["group_id"].to_pylist(),
        unanswered={
            **{
                group: (why or _UNLISTED) if can_be_asked(group) else UNASKABLE
                for group in sorted(unlisted.difference(gone))
            },
            **{row["group_id"]: row["error"] for row in silent},
        },
        unwanted=_unwanted_topics(batch),
    )


def _gone(batch: Settled, unlisted: set[str], *, is_listing_whole: bool) -> tuple[str, ...]:
    source = batch.services.config.source
    unwanted = {group for group in unlisted if not source.wants_group(group)}
    if not is_listing_whole:
        return tuple(sorted(unwanted))
    missing = [group for group in unlisted if group not in unwanted]
    return tuple(sorted({*unwanted, *batch.services.ghosts.among(_committed(batch, missing))}))


def times_of(batch: Settled, asked: Asked) -> Mapping[str, tuple[int, int]]:
    """Return `Stamp.asked` after the batch: by group, the last answer, and since when its answers have been equal.

    Args:
        batch: Batch with the rows; one that runs again has asked no coordinator.
        asked: `asked_groups`.
    """
    newest = batch.driver.progress.stamp
    before = {} if newest is None else newest.asked
    if batch.is_replay:
        return before
    at_ms, changed = batch.stamp.at_ms, _changed(batch, asked)
    listed = {*_of_kind(batch, "listed")["group_id"].to_pylist()} - asked.unanswered.keys()
    # Groups that commit all the time take no room in the stamp.
    quiet = listed - changed
    times = {group: times for group, times in before.items() if group in quiet}
    for group in {*asked.answered} - changed:
        _, since_ms = before.get(group, (at_ms, at_ms))
        # A clock that was ahead, and was set back, would keep it from being quiet until it is there again.
        times[group] = at_ms, min(at_ms, since_ms)
    return times


def _changed(batch: Settled, asked: Asked) -> set[str]:
    """Groups with a commit that differs from the stored one, is new, or is gone."""
    columns = [*LAG_KEY, "committed_offset"]
    is_answered = pc.field("group_id").isin(pa.array(asked.answered, pa.string()))
    stored = batch.services.store.arrow(
        "partition_lag", columns, is_answered & pc.field("committed_offset").is_valid()
    )
    told = batch.read.decoded.kind("commit").select(columns)
    old, new = codes(columns, stored, told)
    others = (stored.filter(pa.array(~np.isin(old, new))), told.filter(pa.array(~np.isin(new, old))))
    return {group for rows in others for group in rows["group_id"].unique().to_pylist()}


def remarks_of(asked: Asked) -> tuple[str, ...]:
    """Return remarks for the operator about groups without an answer."""
    if not asked.unanswered:
        return ()
    group, why = next(iter(asked.unanswered.items()))
    text = (
        f"{len(asked.unanswered)} groups keep their last known values, marked as old (with * in `lagwise lag` and "
        f"`lagwise groups`), because no coordinator returned newer ones; {group!r}: {why}"
    )
    return (text,)


def _unlisted(batch: Settled) -> tuple[set[str], str | None]:
    """Stored groups that were not listed, and why they may be there all the same."""
    store = batch.services.store
    stored = {
        name
        for table in ("consumer_groups", "partition_lag")
        for name in store.arrow(table, ["group_id"])["group_id"].unique().to_pylist()
    }
    listings = _listings(batch)
    listed = {*_of_kind(batch, "listed")["group_id"].to_pylist()}
    if not listings.num_rows:
        return stored - listed, "groups were not listed: the task that forwards the list has no answer"
    return stored - listed, listings["error"][0].as_py()


def _listings(batch: Settled) -> pa.Table:
    return _of_kind(batch, "group_listing")


def _of_kind(batch: Settled, kind: str) -> pa.Table:
    return batch.read.decoded.kind(kind)


def _committed(batch: Settled, groups: list[str]) -> Committed:
    """The partitions that these groups have committed."""
    if not groups:
        return {}
    is_of = pc.field("group_id").isin(pa.array(groups, pa.string())) & pc.field("committed_offset").is_valid()
    rows = batch.services.store.arrow("partition_lag", ["group_id", "topic", "partition"], is_of)
    found: dict[str, list[PartitionKey]] = {group: [] for group in sorted(groups)}
    for row in rows.to_pylist():
        found[row["group_id"]].append((row["topic"], row["partition"]))
    return {group: tuple(keys) for group, keys in found.items()}


def _unwanted_topics(batch: Settled) -> tuple[str, ...]:
    """Stored topics that are no longer wanted: a group that was silent when the filters changed may still have them."""
    names = batch.services.store.arrow("partition_lag", ["topic"])["topic"].unique().to_pylist()
    return tuple(name for name in names if not batch.services.config.source.wants_topic(name))
