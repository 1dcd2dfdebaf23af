"""Tables with one group, of which a test says what is wrong, and what the doctor finds.

They are in memory: what reads Delta is tested where tables are read.
"""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pipeline.config.model import Config
from pipeline.errors import MissingTableError
from pipeline.kafka.positions import Position
from pipeline.operate.doctor.diagnosis import by_tables
from pipeline.operate.doctor.evidence import read_group, read_stream
from pipeline.operate.doctor.finding import Finding
from pipeline.operate.doctor.job import job
from pipeline.operate.doctor.stream import tables_age
from pipeline.planning.state import GroupState, PlanState, to_json
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from tests.support.job.frames import NOW_MS, arrow, at, member

GROUP = "billing"
BATCH_MS = NOW_MS - 10_000
"""Clock of the newest batch."""
OFFSETS_PARTITION = 3
CONFIG = Config.model_validate({"trigger": {"interval_s": 30}})


class _InMemory(Tables):
    """Tables of a folder that has none."""

    rows: dict[str, pa.Table]
    stamps: dict[str, Stamp | None]

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        object.__setattr__(self, "rows", {})
        object.__setattr__(self, "stamps", {})

    def open(self, name: str) -> "_Opened":
        if name not in self.rows:
            raise MissingTableError(name)
        return _Opened(self.rows[name], self.stamps[name])


class _Opened(NamedTuple):
    rows: pa.Table
    stamp: Stamp | None

    def read(self, *, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        return ds.dataset(self.rows).to_table(columns=list(columns), filter=where)


class Patient:
    """Tables under a folder; what is not written is missing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tables = _InMemory(root)

    def write(self, table: str, *rows: dict[str, Any], **stamp: Any) -> None:
        """Write the table whole, with the stamp of the newest batch."""
        named = {"group_id": GROUP, "topic": "invoices", "updated_at": at(-10), "created_at": at(-10)}
        known = {"log_observed_at": at(-10), "observed_at": at(-10), "position": 1, "offset": 1}
        full = [{**named, **known, **row} for row in rows]
        self.tables.rows[table] = arrow(table, *full)
        self.tables.stamps[table] = self.stamp(**stamp)

    def stamp(self, **fields: Any) -> Stamp:
        """That of the newest batch."""
        positions = {("__consumer_offsets", number): Position(offset=5) for number in range(4)}
        given = {"batch_id": 7, "at_ms": BATCH_MS, "positions": positions} | fields
        return Stamp(**given)

    def is_well(self) -> None:
        """A group of two members that has read nearly everything, and its target assignment."""
        self.write("partition_lag", lag(0), lag(1, member_id="b-2"))
        self.write("consumer_groups", group())
        self.write("topic_offsets", {"partition": 0}, {"partition": 1})
        self.decide("unchanged", "the group has its target assignment")

    def decide(
        self, decision: str, reason: str | None, *, plan: PlanState | None = None, **more: Any
    ) -> None:
        """The newest decision about the group."""
        fields = {"recorded_at": at(-10), "moves": [], "state": to_json(GroupState(plan=plan))}
        self.write("plan_state", {"decision": decision, "reason": reason, **fields, **more})

    def findings(
        self, *, group_id: str | None = GROUP, config: Config | None = None, now_s: float = 0.0
    ) -> list[Finding]:
        """What the tables say; without a configuration only its defaults are known."""
        stream = read_stream(self.tables, config or CONFIG, is_configured=config is not None, now=now(now_s))
        rest = job(stream) if group_id is None else by_tables(read_group(stream, group_id))
        return [*tables_age(stream), *rest]


def now(seconds: float = 0.0) -> datetime:
    """So many seconds after `NOW_MS`."""
    return datetime.fromtimestamp(NOW_MS / 1000 + seconds, tz=timezone.utc)


def lag(partition: int, **fields: Any) -> dict[str, Any]:
    """A row of `partition_lag`."""
    read = {
        "committed_offset": 95,
        "log_start_offset": 0,
        "log_end_offset": 100,
        "lag": 5,
        "lag_seconds": 1.0,
    }
    rates = {"arrival_rate": 10.0, "drain_rate": 10.0, "lag_seconds_is_lower_bound": False}
    owner = {"member_id": "b-1", "client_id": "c", "client_host": "/10.0.0.7", "assigned": True}
    return {"partition": partition, **read, **rates, **owner, **fields}


def group(**fields: Any) -> dict[str, Any]:
    """A row of `consumer_groups`."""
    members = [
        member(name, topics=["invoices"], client_id="c", assigned=[("invoices", [number])])
        for number, name in enumerate(("b-1", "b-2"))
    ]
    known = {"group_type": "classic", "state": "Stable", "protocol_type": "consumer", "assignor": "range"}
    return {**known, "generation": 17, "members": members, "offsets_partition": OFFSETS_PARTITION, **fields}


def plan(**fields: Any) -> PlanState:
    """A published plan of two moves."""
    known: dict[str, Any] = {
        "epoch": 7,
        "base_generation": 17,
        "target": {},
        "revoked": {"b-1": {"invoices": "0"}},
        "receivers": ("b-2",),
        "moves": 2,
        "published_at_ms": BATCH_MS - 300_000,
        "sent_at_ms": BATCH_MS - 300_000,
        "valid_until_ms": BATCH_MS + 300_000,
        "lag": 10,
        "drain_s": 1.0,
        "status_at_ms": BATCH_MS - 300_000,
    }
    return PlanState(**known | fields)
