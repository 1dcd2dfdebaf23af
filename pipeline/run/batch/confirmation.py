"""The steps that ask the brokers about groups: unnoticed deletions, and unconfirmed rows.

Rows are unconfirmed if their records were deleted before lagwise read them. Each batch asks the brokers about some of
them, and about groups that they list and that no record names. Until they answer, the rows are kept and marked; a
batch that runs again asks no broker, and leaves them marked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.asked import NOBODY, Asked
from pipeline.fold.columns import is_in
from pipeline.kafka.confirmations import BrokerCommit
from pipeline.kafka.ghosts import Members
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.row_keys import LAG_KEY, codes
from pipeline.run.batch.asked import asked_groups, remarks_of, times_of
from pipeline.run.batch.intake import Settled
from pipeline.source.decoded import Decoded
from pipeline.tables.store import Store

# Names of partitions in one question, which takes some 50 bytes for each.
_MOST_PARTITIONS_OF_STRANGERS = 200_000
_IS_DOUBTFUL = pc.field("unconfirmed_reason").is_valid()


def find_ghosts(batch: Settled) -> tuple[str, ...]:
    """Groups whose deletion was missed: looked for now and then, while everything is read to its end."""
    services = batch.services
    if services.config.source.asks_groups:
        # Groups that no broker lists are asked about with the others.
        return ()
    if batch.reread(OFFSETS_TOPIC):
        services.ghosts.restart()
    if batch.is_replay or batch.stamp.behind or services.is_once:
        return ()
    return services.ghosts.found(lambda: _stored_groups(services.store), now_ms=batch.stamp.at_ms)


def _stored_groups(store: Store) -> Mapping[str, tuple[PartitionKey, ...]]:
    """Classic and unconfirmed groups, and those without a record, with the partitions that they have committed."""
    rows = store.rows("consumer_groups", ["group_id", "group_type", "unconfirmed_reason"])
    # Where the newest record of a KIP-848 group was deleted unread, nothing else tells that it is gone.
    types = {
        row["group_id"]: "classic"
        if row["unconfirmed_reason"] and row["group_type"] == "consumer"
        else row["group_type"]
        for row in rows
    }
    committed = store.arrow(
        "partition_lag", ["group_id", "topic", "partition"], where=pc.field("committed_offset").is_valid()
    )
    found: dict[str, list[PartitionKey]] = {name: [] for name, kind in types.items() if kind == "classic"}
    for row in committed.to_pylist():
        if types.get(row["group_id"], "classic") == "classic":
            found.setdefault(row["group_id"], []).append((row["topic"], row["partition"]))
    return {name: tuple(keys) for name, keys in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """Facts about stored groups and commits, apart from the records of a batch."""

    ghosts: tuple[str, ...] | None
    """Groups whose stored rows do not count, because the brokers no longer know them or they are unwanted; None if no
    stored rows count.

    Commits of this cluster must not be compared with topics of another cluster of its name, whose ids differ.
    """
    commits: pa.Table
    """Commits that the batch has read, and the brokers' answers about others, as decoded rows."""
    seconded: tuple[str, ...] = ()
    """Groups whose records could not be read, while the brokers confirm what is stored of them."""
    remarks: tuple[str, ...] = ()
    """Remarks for an operator on rows that are not confirmed."""
    asked: Asked = NOBODY
    """Groups whose coordinators the batch asked, where no offsets topic is read."""
    asked_at: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """`Stamp.asked` after the batch."""


def confirm_rows(batch: Settled, ghosts: tuple[str, ...]) -> Confirmed:
    """Ask about rows that were left unconfirmed, and about groups without a record."""
    services, progress = batch.services, batch.driver.progress
    read = batch.read.decoded.kind("commit", "tombstone")
    progress.has_doubtful |= bool(batch.beheaded(OFFSETS_TOPIC))
    strangers = services.ghosts.strangers
    confirmed = Confirmed(ghosts=None if batch.driver.replay.is_new_cluster else ghosts, commits=read)
    if services.config.source.asks_groups:
        return _by_answers(batch, confirmed)
    if not (progress.has_doubtful or strangers):
        return confirmed
    commits = services.store.arrow(
        "partition_lag", [*LAG_KEY, "offsets_partition", "unconfirmed_reason"], _IS_DOUBTFUL
    )
    groups = services.store.arrow(
        "consumer_groups",
        ["group_id", "group_type", "members", "offsets_partition", "unconfirmed_reason"],
        _IS_DOUBTFUL,
    )
    confirmed = replace(confirmed, remarks=_remarks(commits, groups))
    if batch.is_replay:
        return confirmed
    progress.has_doubtful = bool(batch.beheaded(OFFSETS_TOPIC) or commits.num_rows or groups.num_rows)
    if confirmed.ghosts is not None:
        ghosts = tuple(sorted({*ghosts, *_unwanted(batch, commits, groups)}))
        confirmed = replace(confirmed, ghosts=ghosts)
    commits, groups = (_settled(batch, rows) for rows in (commits, groups))
    doubtful = _by_group(commits)
    answers = services.confirmations.commits(
        {**_strangers(batch, strangers), **_with_siblings(batch, doubtful)},
        doubtful={(group, *key) for group, keys in doubtful.items() for key in keys},
    )
    return replace(
        confirmed,
        commits=pa.concat_tables([read, _as_commits(read, answers)]),
        seconded=services.confirmations.seconded(_members(groups)),
    )


def _by_answers(batch: Settled, confirmed: Confirmed) -> Confirmed:
    """The groups and remarks that coordinators' answers give, where no offsets topic is read."""
    gone, asked = asked_groups(batch)
    return replace(
        confirmed,
        ghosts=None if confirmed.ghosts is None else gone,
        remarks=remarks_of(asked),
        asked=asked,
        asked_at=times_of(batch, asked),
    )


def _remarks(commits: pa.Table, groups: pa.Table) -> tuple[str, ...]:
    names = {*commits["group_id"].to_pylist(), *groups["group_id"].to_pylist()}
    if not names:
        return ()
    text = (
        f"{commits.num_rows} commits and the members of {groups.num_rows} groups may be out of date ({len(names)} "
        "groups in all): records were deleted from the beginning of the offsets topic before they were read; lagwise "
        "asks the brokers for the commits, and marks what they cannot confirm until the group writes its next record "
        "(with * in `lagwise lag` and `lagwise groups`)"
    )
    return (text,)


def _settled(batch: Settled, rows: pa.Table) -> pa.Table:
    """The rows whose partition of the offsets topic is read to its end: others may still be met there."""
    return rows.filter(pa.array(~is_in(rows["offsets_partition"].combine_chunks(), batch.stamp.behind)))


def _unwanted(batch: Settled, commits: pa.Table, groups: pa.Table) -> set[str]:
    """Groups that the patterns do not take any more: nothing else would ever drop them."""
    names = {*commits["group_id"].to_pylist(), *groups["group_id"].to_pylist()}
    source = batch.services.config.source
    return {name for name in names if not source.wants_group(name)}


def _by_group(commits: pa.Table) -> dict[str, set[PartitionKey]]:
    found: dict[str, set[PartitionKey]] = {}
    for row in commits.select(LAG_KEY).to_pylist():
        found.setdefault(row["group_id"], set()).add((row["topic"], row["partition"]))
    return found


def _with_siblings(
    batch: Settled, doubtful: Mapping[str, set[PartitionKey]]
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


def _strangers(batch: Settled, names: set[str]) -> dict[str, tuple[PartitionKey, ...]]:
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


def _as_commits(read: pa.Table, answers: list[BrokerCommit]) -> pa.Table:
    """The answers as rows, added to the commits that were read; those are newer than what is stored, and win."""
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
    """What is stored of the members of groups, as far as it is known."""
    return {
        row["group_id"]: {
            member["member_id"]: frozenset(
                (topic, number) for topic, numbers in (member["assigned"] or {}).items() for number in numbers
            )
            for member in row["members"]
        }
        for row in groups.to_pylist(maps_as_pydicts="strict")
        if row["group_type"] in {"classic", "consumer"} and row["members"] is not None
    }
