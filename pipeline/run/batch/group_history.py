"""The step of the groups' history: a row on each change that the group records show.

It is written before `consumer_groups`, which still holds the groups as the batch before left them: what differs is new.
After a start, and where a partition of the offsets topic was not read to its end by the batch before, the newest row of
the history is compared instead. So the row of a batch that was cut short is found, whether or not it runs again,
and there is no second one.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignor.model.arrays import Bools
from pipeline.fold.columns import is_in
from pipeline.fold.group_changes import GONE, IS_GONE, KNOWN, Holdings, group_changes
from pipeline.fold.groups import fold_groups
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.planning.memory import PlanMemory
from pipeline.planning.state import from_json
from pipeline.row_keys import NO_ROW, codes, last_of_each
from pipeline.run.batch.writes import ghosts_of, stamped, write
from pipeline.run.driver import Batch
from pipeline.run.rows import less_ghosts, of_cluster
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.reading import all_of
from pipeline.tables.schemas import GROUP_HISTORY
from pipeline.tables.store import Store

_RECORD = ("group_id", "group_type", "offsets_partition", "group_position")
"""What is the same of a group as long as no new record of it is read."""
_KNOWN = pa.schema([arrow_schema(GROUP_HISTORY).field(name).with_nullable(True) for name in KNOWN])
_RECORDED = _KNOWN.append(pa.field(IS_GONE, pa.bool_()))


def store_group_history(batch: Batch) -> None:
    """Fold the groups, when there is anything to fold, and write down what is new about them."""
    store = batch.services.store
    if "consumer_groups" in batch.written or not _has_news(batch):
        return
    stored = store.arrow("consumer_groups")
    batch.groups = fold_groups(
        less_ghosts(stored, ghosts_of(batch)),
        batch.decoded.kind("group", "group_tombstone"),
        reread=batch.reread(OFFSETS_TOPIC),
        behind=batch.clock.behind,
        beheaded=batch.beheaded(OFFSETS_TOPIC),
        seconded=batch.seconded,
    )
    if "group_history" not in batch.written:
        changes = _changes(batch, stored, batch.groups)
        if changes.num_rows:
            rows = of_cluster(batch.services.cluster, stamped(batch, changes))
            write(batch, "group_history", rows.append_column("date", rows["updated_at"].cast(pa.date32())))


def _has_news(batch: Batch) -> bool:
    """Whether there are records of groups, or a partition was read to its end: then its stale groups go."""
    driver = batch.driver
    is_stale = (
        driver.replay.is_first
        or batch.reread(OFFSETS_TOPIC)
        or batch.ghosts
        or batch.seconded
        or batch.clock.behind != driver.progress.behind
    )
    return bool(
        batch.summary.group_records or (is_stale and batch.services.store.has_rows("consumer_groups"))
    )


def _changes(batch: Batch, stored: pa.Table, folded: pa.Table) -> pa.Table:
    """What is new, of the groups whose partition is read to its end.

    What is read on the way there happened long ago, and may be undone by what follows.
    """
    behind, caught_up = batch.clock.behind, _caught_up(batch)
    now = folded.filter(
        pa.array(~_is_in(folded, behind) & (_is_in(folded, caught_up) | _is_other(folded, stored)))
    )
    was = stored.filter(
        pa.array(~_is_in(stored, behind) & ~_is_in(stored, caught_up) & _is_other(stored, folded))
    )
    strangers = now.filter(_is_none_of(now, stored))["group_id"].combine_chunks()
    recorded = _recorded(batch.services.store, caught_up, strangers)
    recorded = recorded.filter(pa.array(~_is_in(recorded, behind)))
    was = was.filter(_is_none_of(was, recorded)).select(KNOWN).cast(_KNOWN)
    there = was.append_column(IS_GONE, pa.repeat(pa.scalar(value=False), was.num_rows))
    return group_changes(
        pa.concat_tables([there, recorded]),
        now.select(KNOWN).cast(_KNOWN),
        lambda group_id: _target(batch.driver.memory, group_id),
    )


def _caught_up(batch: Batch) -> tuple[int, ...] | None:
    """Partitions of the offsets topic that the batch before did not leave read to their end; None for all."""
    if batch.driver.replay.is_first:
        return None
    return tuple(sorted(set(batch.driver.progress.behind) - set(batch.clock.behind)))


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
    newest = _last(store.arrow("group_history", ["group_id", "updated_at"], wanted))
    is_as_new = pc.field("updated_at").isin(newest["updated_at"].combine_chunks().unique())
    rows = store.arrow("group_history", [*KNOWN, "updated_at", "why"], all_of(wanted, is_as_new))
    last = _last(rows)
    return last.select(KNOWN).append_column(IS_GONE, pc.equal(last["why"], GONE)).cast(_RECORDED)


def _last(rows: pa.Table) -> pa.Table:
    """The row of each group with the latest time."""
    (group,) = codes(("group_id",), rows)
    return rows.take(pa.array(last_of_each(group, rows["updated_at"].cast(pa.int64()).to_numpy())))


def _is_in(groups: pa.Table, partitions: tuple[int, ...] | None) -> Bools:
    if partitions is None:
        return np.ones(groups.num_rows, np.bool_)
    return is_in(groups["offsets_partition"].combine_chunks(), partitions)


def _is_other(groups: pa.Table, others: pa.Table) -> Bools:
    """Which groups have no record, or another one, among the others."""
    own, those = codes(_RECORD, *(_records(table) for table in (groups, others)))
    return ~np.isin(own, those)


def _records(groups: pa.Table) -> pa.Table:
    """`_RECORD`, without nulls."""
    columns = {name: groups[name] for name in _RECORD}
    numbers = ("offsets_partition", "group_position")
    return pa.table({**columns, **{name: pc.fill_null(columns[name], NO_ROW) for name in numbers}})


def _is_none_of(groups: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(groups["group_id"], value_set=others["group_id"].combine_chunks()))
