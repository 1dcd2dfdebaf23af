"""The steps of group records: a row of history for each change, and the present groups.

The history is written before `consumer_groups`, which still holds the groups of the previous batch: differences are
new.
After a start, and for partitions of the offsets topic that the previous batch did not read to the end, the newest row
of the history is compared instead. So the row of an interrupted batch is found, whether or not the batch runs again,
and there is no second one.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools
from pipeline.arrow_columns import bools, moment
from pipeline.fold.asked import marked
from pipeline.fold.columns import is_in, may_be_met
from pipeline.fold.consumer_groups import consumer_group_events, has_unresolved, resolvable
from pipeline.fold.group_changes import GONE, IS_GONE, KNOWN, Holdings, group_changes
from pipeline.fold.groups import fold_groups
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.planning.memory import PlanMemory
from pipeline.planning.state import from_json
from pipeline.row_keys import NO_ROW, codes, newest_of_groups
from pipeline.run.batch.confirmation import Confirmed
from pipeline.run.batch.intake import Settled
from pipeline.run.rows import without
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.reading import all_of
from pipeline.tables.schemas import GROUP_HISTORY, GROUP_STATE
from pipeline.tables.store import Store

_RECORD = ("group_id", "group_type", "offsets_partition", "group_position")
"""Columns that stay the same until a new record of the group is read."""
_IS_KIP848 = pc.field("group_type") == "consumer"
_KNOWN = pa.schema([arrow_schema(GROUP_HISTORY).field(name).with_nullable(True) for name in KNOWN])
_RECORDED = _KNOWN.append(pa.field(IS_GONE, pa.bool_()))


def store_group_history(batch: Settled, confirmed: Confirmed) -> pa.Table | None:
    """Write the changes of groups, and return the present groups; None if they are as stored."""
    store = batch.services.store
    if "consumer_groups" in batch.held or not (_has_news(batch, confirmed) or _has_new_names(store)):
        return None
    stored = store.arrow("consumer_groups")
    kept = without(stored, "group_id", confirmed.ghosts)
    events = _events(batch, kept)
    groups = fold_groups(
        without(kept, "group_id", _answered(events)),
        events,
        reread=batch.reread(OFFSETS_TOPIC),
        behind=batch.stamp.behind,
        beheaded=batch.beheaded(OFFSETS_TOPIC),
        seconded=confirmed.seconded,
    )
    groups = marked(groups, confirmed.asked)
    if "group_history" not in batch.held:
        changes = _changes(batch, stored, groups)
        if changes.num_rows:
            date = moment(batch.stamp.at_ms).cast(pa.date32())
            rows = changes.append_column("date", pa.repeat(date, changes.num_rows))
            batch.write_measured("group_history", rows)
    return groups


def store_groups(batch: Settled, groups: pa.Table | None) -> None:
    """The groups as they were folded for the history, which is written first."""
    if groups is not None:
        batch.write_measured("consumer_groups", groups)


def _has_news(batch: Settled, confirmed: Confirmed) -> bool:
    """Whether there are records of groups, or a partition was read to its end: then its stale groups go."""
    driver = batch.driver
    is_stale = (
        batch.past is not None
        or batch.reread(OFFSETS_TOPIC)
        or confirmed.ghosts
        or confirmed.seconded
        or confirmed.asked.unanswered
        or batch.stamp.behind != driver.progress.behind
    )
    return bool(
        batch.read.summary.group_records or (is_stale and batch.services.store.count("consumer_groups"))
    )


def _has_new_names(store: Store) -> bool:
    """Whether a topic of a KIP-848 group can be named that could not be when its records were read."""
    groups = store.arrow("consumer_groups", ["group_id", "reconciliation"], _IS_KIP848)
    return bool(has_unresolved(groups) and resolvable(groups, _topic_names(store)))


def _topic_names(store: Store) -> dict[str, str]:
    """Topics that the brokers have named, by id, as far as they report ids."""
    known = pc.field("topic_id").is_valid()
    rows = (
        store.arrow("topic_offsets", ["topic_id", "topic"], known)
        .group_by(["topic_id", "topic"])
        .aggregate([])
    )
    return dict(zip(rows["topic_id"].to_pylist(), rows["topic"].to_pylist(), strict=True))


def _events(batch: Settled, stored: pa.Table) -> pa.Table:
    """What is new about groups: classic ones and others as they were read, KIP-848 ones as their records leave them."""
    decoded = batch.read.decoded
    read, records = (
        decoded.kind("group", "group_tombstone"),
        decoded.kind("group_record", "group_record_tombstone"),
    )
    if batch.services.config.source.asks_groups:
        return _told(batch, stored, read)
    if not (records.num_rows or has_unresolved(stored)):
        # Nobody asks for names of topics where there are no KIP-848 groups.
        return read
    of_records = consumer_group_events(
        stored,
        records,
        _topic_names(batch.services.store),
        reread=batch.reread(OFFSETS_TOPIC),
        beheaded=batch.beheaded(OFFSETS_TOPIC),
    )
    return pa.concat_tables([read, of_records], promote_options="permissive")


def _told(batch: Settled, stored: pa.Table, events: pa.Table) -> pa.Table:
    """What coordinators answered about groups; for one without an answer, that it exists, unless it is stored."""
    asked = batch.read.decoded.kind("asked")
    silent = asked.filter(pc.is_valid(asked["error"]))["group_id"]
    return without(
        events,
        "group_id",
        silent.filter(pc.is_in(silent, value_set=stored["group_id"].combine_chunks())),
    )


def _answered(events: pa.Table) -> tuple[str, ...]:
    """Groups that a coordinator has described: all that was stored of them is replaced."""
    return tuple(events.filter(pc.is_null(events["position"]))["group_id"].to_pylist())


def _changes(batch: Settled, stored: pa.Table, folded: pa.Table) -> pa.Table:
    """What is new, of the groups whose partition is read to its end.

    What is read on the way there happened long ago, and may be undone by what follows.
    """
    behind, caught_up = batch.stamp.behind, _caught_up(batch)
    now = folded.filter(
        pa.array(~_may_be_met(folded, behind) & (_is_in(folded, caught_up) | _is_other(folded, stored)))
    )
    was = stored.filter(
        pa.array(~_may_be_met(stored, behind) & ~_is_in(stored, caught_up) & _is_other(stored, folded))
    )
    # What a coordinator has told of before the topic was read is in the history without a partition.
    caught = now["group_id"].filter(pa.array(_is_in(now, caught_up)))
    strangers = without(now, "group_id", stored["group_id"])["group_id"]
    further = pa.chunked_array([*caught.chunks, *strangers.chunks], pa.string()).combine_chunks()
    recorded = _recorded(batch.services.store, caught_up, further)
    is_met = bools(
        pc.is_in(recorded["group_id"], value_set=now["group_id"].combine_chunks()).combine_chunks()
    )
    is_open = _is_in(recorded, behind) | (_may_be_met(recorded, behind) & ~is_met)
    recorded = recorded.filter(pa.array(~is_open))
    was = without(was, "group_id", recorded["group_id"]).select(KNOWN).cast(_KNOWN)
    there = was.append_column(IS_GONE, pa.repeat(pa.scalar(value=False), was.num_rows))
    return group_changes(
        pa.concat_tables([there, recorded]),
        now.select(KNOWN).cast(_KNOWN),
        lambda group_id: _target(batch.driver.memory, group_id),
    )


def _caught_up(batch: Settled) -> tuple[int, ...] | None:
    """Partitions of the offsets topic that the batch before did not leave read to their end; None for all."""
    if batch.past is not None:
        return None
    return tuple(sorted(set(batch.driver.progress.behind) - set(batch.stamp.behind)))


def _target(memory: PlanMemory, group_id: str) -> Holdings | None:
    plan = from_json(memory.states.get(group_id)).plan
    return None if plan is None else plan.target


def _recorded(store: Store, partitions: tuple[int, ...] | None, groups: pa.Array) -> pa.Table:
    """`KNOWN` and `IS_GONE`, of the newest row in the history of each group of these partitions (None: of any group).

    Args:
        store: The tables.
        partitions: Of the offsets topic.
        groups: Further groups.
    """
    if partitions == () and not len(groups):
        return _RECORDED.empty_table()
    wanted = None
    if partitions is not None:
        of_partitions = pc.field("offsets_partition").isin(pa.array(partitions, pa.int32()))
        wanted = of_partitions | pc.field("group_id").isin(groups)
    # Rows are wide, and all but the newest are looked at for their time only.
    newest = newest_of_groups(store.arrow("group_history", ["group_id", "updated_at"], wanted), "updated_at")
    is_as_new = pc.field("updated_at").isin(newest["updated_at"].combine_chunks().unique())
    rows = store.arrow("group_history", [*KNOWN, "updated_at", "why"], all_of(wanted, is_as_new))
    last = newest_of_groups(rows, "updated_at")
    return last.select(KNOWN).append_column(IS_GONE, pc.equal(last["why"], GONE)).cast(_RECORDED)


def _is_in(groups: pa.Table, partitions: tuple[int, ...] | None) -> Bools:
    if partitions is None:
        return np.ones(groups.num_rows, np.bool_)
    return is_in(groups["offsets_partition"].combine_chunks(), partitions)


def _may_be_met(groups: pa.Table, behind: tuple[int, ...]) -> Bools:
    return may_be_met(groups["offsets_partition"].combine_chunks(), behind)


def _is_other(groups: pa.Table, others: pa.Table) -> Bools:
    """Which groups have no record, or another one, among the others; what stands in no record is compared itself."""
    are_recorded = not any(table["group_position"].null_count for table in (groups, others))
    records = _records if are_recorded else _contents
    both = records(groups), records(others)
    own, those = codes(both[0].column_names, *both)
    return ~np.isin(own, those)


def _records(groups: pa.Table) -> pa.Table:
    """`_RECORD`, without nulls."""
    columns = {name: groups[name] for name in _RECORD}
    numbers = ("offsets_partition", "group_position")
    return pa.table({**columns, **{name: pc.fill_null(columns[name], NO_ROW) for name in numbers}})


def _contents(groups: pa.Table) -> pa.Table:
    """`_records`, and what there is of each group that stands in no record."""
    is_unrecorded = pc.is_null(groups["group_position"]).combine_chunks()
    rows = groups.select(GROUP_STATE).filter(is_unrecorded).to_pylist()
    none = pa.array([""] * groups.num_rows, pa.string())
    content = pc.replace_with_mask(none, is_unrecorded, pa.array(map(repr, rows), pa.string()))
    return _records(groups).append_column("content", content)
