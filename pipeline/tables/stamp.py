"""Store: the stamp in each commit of a table, which describes the batch that made it.

The stamp of `partition_lag` is also the memory of the stream between two starts: its positions in Kafka's topics, the
cluster, and the filters. It is lost, kept and restored together with the rows.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from deltalake import DeltaTable, PostCommitHookProperties

from pipeline import clock
from pipeline.errors import StoreError
from pipeline.kafka.positions import PartitionKey, Position, Span, from_fields, to_fields

NO_PLANS_BY_ANSWERS = (
    "coordinators are asked (source.offsets), and they report neither subscriptions nor generations nor commit "
    "times, "
    "so lagwise measures but makes no plans"
)
"""`Stamp.held` of a job that does not read the offsets topic: a permanent state, and no fault."""

# The search for a stamp looks at this many of a table's newest commits first, and then at all: reading the whole log
# takes a second per thousand commits, and 50 stamps with 10,000 groups that were asked about take 0.17 s. Maintenance
# and every start add commits without one.
_SEARCHES = (2, 50, None)

_KEEPING_ROWS = frozenset(
    {
        "OPTIMIZE",
        "REORG",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "ADD COLUMNS",
        "ADD COLUMN",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
        "CLUSTER BY",
        "COMPUTE STATS",
        "UPGRADE PROTOCOL",
        "ADD FEATURE",
        "DROP FEATURE",
        "UPDATE FIELD METADATA",
        "UPDATE TABLE METADATA",
    }
)
"""Operations of Spark's Delta and delta-rs that change no row. Their `userMetadata` is a message of whoever ran them
(`spark.databricks.delta.commitInfo.userMetadata`), and the stamp is still that of the batch before."""

KEEPS_STAMPS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""For every commit: maintenance alone cuts the log, and with it the stamps, for by then the newest stamp is young."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A batch: its number, its clock, what it read and what it could not read."""

    query_id: str = ""
    """Written for readers of an earlier version, which require it."""
    batch_id: int
    """Spark's number of the batch; a new checkpoint starts again with 0."""
    at_ms: int
    """The batch's clock: ms since the epoch, read once, by the batch's first write."""
    behind: tuple[int, ...] = ()
    """Partitions of the offsets topic that are not read to their end, or not now: their groups are provisional."""
    reason: str | None = None
    """Reason why these partitions are behind; null if there are none."""
    held: str | None = None
    """Why no group gets a plan; null if groups get plans."""
    held_acks: Mapping[str, str] = field(default_factory=dict)
    """Why groups get no plan, by the topic of their acknowledgements; empty if that is so for all groups."""
    is_clock_behind: bool = False
    """True if the clock is the reason; then an operator must set it."""
    cluster_id: str = ""
    """Kafka's id of the cluster."""
    filters: str = ""
    """Identifies the patterns of topics and groups."""
    positions: Mapping[PartitionKey, Position] | None = None
    """Position in each partition after the batch; null in tables of a version that did not keep it here."""
    spans: tuple[Span, ...] = ()
    """Spans that the batch read."""
    reread: tuple[PartitionKey, ...] = ()
    """Partitions that the batch began to read from their log start."""
    brokers: int | None = None
    """Live brokers when the batch listed topics; null if that is unknown."""
    beheaded: tuple[PartitionKey, ...] = ()
    """Those of `reread` whose logs have lost their beginning (`positions.Intake`)."""
    remarks: tuple[str, ...] = ()
    """Remarks for an operator on the rows, or on how they are read; none of them stops anything."""
    written_ms: Mapping[str, int] = field(default_factory=dict)
    """When the tables that `partition_lag` was written with had been written last, by their newest row."""
    tick: int = 0
    """Names the batch in Spark's checkpoint (`source.offset`); 0 in tables of a version that read without a source."""
    distrusted: tuple[tuple[str, int, str], ...] = ()
    """Partitions (topic, number) that the next possible batch reads again from their start, and why."""
    followed: tuple[PartitionKey, ...] = ()
    """Partitions whose leader answered this batch, so that the next one misses nothing."""
    tombstones_kept_ms: Mapping[str, int | None] = field(default_factory=dict)
    """`delete.retention.ms` of the topics that are read, as known then; null where it is unknown."""
    asked: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For each group whose coordinator has repeated the known commits: when it last did, and since when it has always
    done so; ms."""
    parallelism: int = 1
    """Tasks that Spark could run at once."""

    def age_s(self, now_ms: int) -> float:
        """Age of the batch by its clock, at least 0: clocks of two hosts may differ by more than that."""
        return max(0.0, (now_ms - self.at_ms) / 1000)

    def to_json(self) -> str:
        """One line that `from_json` reads back."""
        positions = None if self.positions is None else to_fields(self.positions)
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return json.dumps(
            plain | {"positions": positions, "spans": [asdict(span) for span in self.spans]},
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> "Stamp":
        """The stamp that `to_json` of this or an earlier version wrote. Fields of later versions are ignored."""
        known = {one.name for one in fields(cls)}
        given: dict[str, Any] = {name: value for name, value in json.loads(text).items() if name in known}
        positions = given.get("positions")
        return cls(
            **given
            | {
                "behind": tuple(given.get("behind", ())),
                "positions": None if positions is None else from_fields(positions),
                "spans": tuple(Span(**span) for span in given.get("spans", ())),
                **{
                    name: tuple((topic, number) for topic, number in given.get(name, ()))
                    for name in ("reread", "beheaded", "followed")
                },
                "distrusted": tuple(
                    (topic, number, why) for topic, number, why in given.get("distrusted", ())
                ),
                "remarks": tuple(given.get("remarks", ())),
                "asked": {group: (at, since) for group, (at, since) in given.get("asked", {}).items()},
            }
        )


def newest_stamp(handle: DeltaTable) -> Stamp | None:
    """Return the newest stamp in a table's log, or None if no batch has written the table yet.

    After a RESTORE it is the stamp of the version that came back. A RESTORE by Spark to a time leaves none, as Spark
    does not write which version it was.

    Maintenance truncates the log after its retention, and removes the stamp if nothing has been written since.

    Raises:
        StoreError: The newest `userMetadata` is not a stamp.
    """
    searches = (_newest_metadata(handle.history(limit)) for limit in _SEARCHES)
    found = next((one for one in searches if one is not None), None)
    return None if found is None else _decoded(found, handle)


def _decoded(text: str, handle: DeltaTable) -> Stamp:
    try:
        stamp = Stamp.from_json(text)
        clock.at(stamp.at_ms)
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        ArithmeticError,
        OSError,
        RecursionError,
    ) as error:
        raise StoreError(
            f"the newest userMetadata in the log of the table at {handle.table_uri} is not lagwise's ({error}): "
            "another program has written to the table; stop it, and restore the table from a backup, or move its "
            "folder away, and the next start creates it again"
        ) from error
    return stamp


def _newest_metadata(history: list[dict[str, Any]]) -> str | None:
    """Find the newest metadata in the commits of a table, newest first, of those that may have changed rows.

    Commits that a RESTORE has undone do not count.
    """
    undone: Callable[[Mapping[str, Any]], bool] = _none
    for commit in history:
        if undone(commit):
            continue
        if commit.get("operation") == "RESTORE":
            undone = _undone_by(commit["operationParameters"])
        elif commit.get("operation") in _KEEPING_ROWS:
            continue
        elif (found := commit.get("userMetadata")) is not None:
            return str(found)
    return None


def _undone_by(restored_to: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    version, at_ms = restored_to.get("version"), restored_to.get("datetime")
    if version is not None:
        return lambda commit: commit["version"] > int(version)
    if at_ms is not None:
        return lambda commit: commit["timestamp"] > int(at_ms)
    # Spark writes a time without its zone, so nobody knows which commits came back.
    return lambda _: True


def _none(_: Mapping[str, Any]) -> bool:
    return False
