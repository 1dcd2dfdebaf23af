"""The step of unconfirmed rows: groups and commits whose records were deleted before they were read.

The brokers are asked about them, some with each batch, and about groups that they list and that no record names. Until
they have answered, the rows are kept and marked; a batch that runs again asks nobody, and leaves them so.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.columns import is_in
from pipeline.kafka.confirmations import BrokerCommit
from pipeline.kafka.ghosts import Members
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.row_keys import LAG_KEY, codes
from pipeline.run.driver import Batch
from pipeline.source.decoded import Decoded

# Names of partitions in one question, which takes some 50 bytes for each.
_MOST_PARTITIONS_OF_STRANGERS = 200_000
_IS_DOUBTFUL = pc.field("unconfirmed_reason").is_valid()


def confirm_rows(batch: Batch) -> None:
    """Ask about rows that were left unconfirmed, and about groups that stand in no record."""
    services, progress = batch.services, batch.driver.progress
    progress.has_doubtful |= bool(batch.beheaded(OFFSETS_TOPIC))
    strangers = services.ghosts.strangers
    if batch.is_replay or not (progress.has_doubtful or strangers):
        return
    commits = services.store.arrow(
        "partition_lag", [*LAG_KEY, "offsets_partition", "unconfirmed_reason"], _IS_DOUBTFUL
    )
    groups = services.store.arrow(
        "consumer_groups",
        ["group_id", "group_type", "members", "offsets_partition", "unconfirmed_reason"],
        _IS_DOUBTFUL,
    )
    progress.has_doubtful = bool(batch.beheaded(OFFSETS_TOPIC) or commits.num_rows or groups.num_rows)
    if progress.has_doubtful:
        batch.stamp = replace(batch.clock, remarks=(*batch.clock.remarks, *_remark(commits, groups)))
    _leave_unwanted(batch, commits, groups)
    commits, groups = (_settled(batch, rows) for rows in (commits, groups))
    doubtful = _by_group(commits)
    answers = services.confirmations.commits(
        {**_strangers(batch, strangers), **_with_siblings(batch, doubtful)},
        doubtful={(group, *key) for group, keys in doubtful.items() for key in keys},
    )
    batch.answered = _as_commits(batch, answers)
    batch.seconded = services.confirmations.seconded(_members(groups))


def _remark(commits: pa.Table, groups: pa.Table) -> tuple[str, ...]:
    names = {*commits["group_id"].to_pylist(), *groups["group_id"].to_pylist()}
    if not names:
        return ()
    text = (
        f"{commits.num_rows} commits and the members of {groups.num_rows} groups may be out of date ({len(names)} "
        "groups in all): records were deleted from the beginning of the offsets topic before they were read; the "
        "brokers are asked for the commits, and what they cannot say is marked until the group writes its next record "
        "(`lagwise lag` and `lagwise groups` mark them with *)"
    )
    return (text,)


def _settled(batch: Batch, rows: pa.Table) -> pa.Table:
    """The rows whose partition of the offsets topic is read to its end: others may still be met there."""
    return rows.filter(pa.array(~is_in(rows["offsets_partition"].combine_chunks(), batch.clock.behind)))


def _leave_unwanted(batch: Batch, commits: pa.Table, groups: pa.Table) -> None:
    """Drop groups that the patterns do not take any more: nothing else would ever drop them."""
    names = {*commits["group_id"].to_pylist(), *groups["group_id"].to_pylist()}
    source = batch.services.config.source
    unwanted = {name for name in names if not source.wants_group(name)}
    batch.ghosts = tuple(sorted({*batch.ghosts, *unwanted}))


def _by_group(commits: pa.Table) -> dict[str, set[PartitionKey]]:
    found: dict[str, set[PartitionKey]] = {}
    for row in commits.select(LAG_KEY).to_pylist():
        found.setdefault(row["group_id"], set()).add((row["topic"], row["partition"]))
    return found


def _with_siblings(
    batch: Batch, doubtful: Mapping[str, set[PartitionKey]]
) -> dict[str, tuple[PartitionKey, ...]]:
    """The partitions of each group, and the others of their topics: the group may have begun to read them since."""
    topics = pa.array(sorted({topic for keys in doubtful.values() for topic, _ in keys}), pa.string())
    known = batch.services.store.arrow(
        "topic_offsets", ["topic", "partition"], pc.field("topic").isin(topics)
    )
    of_topic: dict[str, set[PartitionKey]] = {}
    for row in known.to_pylist():
        of_topic.setdefault(row["topic"], set()).add((row["topic"], row["partition"]))
    return {
        group: tuple(sorted(keys.union(*(of_topic.get(topic, ()) for topic, _ in keys))))
        for group, keys in doubtful.items()
    }


def _strangers(batch: Batch, names: set[str]) -> dict[str, tuple[PartitionKey, ...]]:
    """Some of the groups that stand in no row, taken from `names`, with all partitions that are known."""
    if not names:
        return {}
    store = batch.services.store
    known = {
        name
        for table in ("consumer_groups", "partition_lag")
        for name in store.arrow(table, ["group_id"])["group_id"].unique().to_pylist()
    }
    names -= known | {name for name in names if not batch.services.config.source.wants_group(name)}
    rows = store.arrow("topic_offsets", ["topic", "partition"], pc.field("deleted_at").is_null()).to_pylist()
    keys = tuple((row["topic"], row["partition"]) for row in rows)
    count = max(1, _MOST_PARTITIONS_OF_STRANGERS // max(1, len(keys)))
    turn = sorted(names)[:count]
    names.difference_update(turn)
    return dict.fromkeys(turn, keys)


def _as_commits(batch: Batch, answers: list[BrokerCommit]) -> pa.Table:
    """The answers as rows beside the commits of the batch, which are newer than what is stored, and win."""
    read = batch.decoded.kind("commit", "tombstone")
    rows = [
        {
            "row_kind": "answer_none" if one.offset is None else "answer",
            "group_id": one.group_id,
            "topic": one.topic,
            "partition": one.partition,
            "committed_offset": one.offset,
        }
        for one in answers
    ]
    table = pa.Table.from_pylist(rows, schema=Decoded().kind("commit").schema)
    own, taken = codes(LAG_KEY, table, read)
    return table.filter(pa.array(~np.isin(own, taken)))


def _members(groups: pa.Table) -> dict[str, Members]:
    """What is stored of the members of classic groups."""
    return {
        row["group_id"]: {
            member["member_id"]: frozenset(
                (topic, number) for topic, numbers in (member["assigned"] or {}).items() for number in numbers
            )
            for member in row["members"]
        }
        for row in groups.to_pylist(maps_as_pydicts="strict")
        if row["group_type"] == "classic" and row["members"] is not None
    }
