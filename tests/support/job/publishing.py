"""Played brokers and tables of plans: what is published to a control topic, and what was written down before."""

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException

from assignor.protocol import control
from pipeline.config.model import Config, PlanConfig
from pipeline.publish.read_back import decisions_of
from pipeline.run.batch.plans.late import connect
from pipeline.run.driver import Driver
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import ORDERS, PLAN_STATE
from pipeline.tables.stamp import Stamp
from tests.support.job.frames import arrow, at
from tests.support.planning.plan_walk import walk

AWAY = KafkaError._TIMED_OUT
PUBLISHING = Config(plan=PlanConfig(dry_run=False))


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@dataclass
class Cluster:
    """Brokers that do what the test says, and a clock."""

    now_s: float = 1_000.0
    coordinator: Exception | None = None
    """What the transaction coordinator says."""
    topic: dict[str, int] | Exception = field(default_factory=dict)
    """Epoch of each group in the control topic; the plans are valid for another minute."""
    commit: Exception | None = None
    """What becomes of a transaction."""
    sent: list[tuple[str, int]] = field(default_factory=list)
    """Group and epoch of records in committed transactions."""
    producers: int = 0


class PlayedProducer:
    """A transactional producer."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._open: list[tuple[str, int]] = []
        cluster.producers += 1

    def init_transactions(self, _timeout_s: float) -> None:
        if self._cluster.coordinator is not None:
            raise self._cluster.coordinator

    def begin_transaction(self) -> None:
        self._open = []

    def produce(self, _topic: str, *, key: bytes, value: bytes | None, headers: Any) -> None:
        _, group = control.decode_key(key)
        self._open.append((group if value else f"{group} withdrawn", int(dict(headers)["epoch"])))

    def poll(self, _timeout_s: float) -> None:
        pass

    def commit_transaction(self, _timeout_s: float) -> None:
        if self._cluster.commit is not None:
            raise self._cluster.commit
        self._cluster.sent += self._open


_ROW: dict[str, Any] = {
    "group_id": "g",
    "decision": "publish",
    "epoch": 3,
    "record": walk().decide().record,
    "target_hash": "target",
    "base_hash": "base",
    "valid_until": at(60),
    "updated_at": at(0),
    "recorded_at": at(0),
}


def table(*plans: dict[str, Any]) -> pa.Table:
    """Rows of `plan_state`, which those of `recommendations` are taken from."""
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(PLAN_STATE)])
    return pa.Table.from_pylist([_ROW | plan for plan in plans], schema=schema)


_ORDERS = pa.schema(
    [arrow_schema(ORDERS).field(name) for name in ("group_id", "paused", "pinned", "resumed_at")]
)


class Stored:
    """Stands for the tables."""

    def __init__(
        self,
        *,
        decisions: pa.Table,
        recorded: pa.Table,
        paused: tuple[str, ...] = (),
        pinned: tuple[str, ...] = (),
        resumed: tuple[str, ...] = (),
    ) -> None:
        given = [
            {
                "group_id": group,
                "paused": group in paused,
                "pinned": {"t": "0"} if group in pinned else {},
                "resumed_at": at(0) if group in resumed else None,
            }
            for group in (*paused, *pinned, *resumed)
        ]
        orders = pa.Table.from_pylist(given, schema=_ORDERS)
        self.tables = {
            "plan_state": decisions,
            "recommendations": recorded,
            "orders": orders,
            "consumer_groups": arrow("consumer_groups"),
        }
        self.appended: list[pa.Table] = []
        self.stamps: dict[str, Stamp] = {}

    def stamp(self, name: str) -> Stamp | None:
        return self.stamps.get(name)

    def arrow(
        self, name: str, columns: list[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        rows = self.tables[name]
        found = rows if where is None else rows.filter(where)
        return found if columns is None else found.select(columns)

    def write(self, name: str, rows: pa.Table, _stamp: Stamp) -> None:
        self.appended.append(rows)
        self.tables[name] = rows


def left_behind(driver: Driver, plans: pa.Table, **orders: tuple[str, ...]) -> Driver:
    """The driver with such a history in its tables, and such orders."""
    recorded = plans.append_column("created_at", plans["recorded_at"])
    services = replace(driver.services, store=Stored(decisions=table(), recorded=recorded, **orders))
    return replace(driver, services=services)


def unavailable(driver: Driver, plans: pa.Table) -> str | None:
    """Why no plan can be published by a driver with such a history."""
    return connect(left_behind(driver, plans).services, driver.memory)


def publish(driver: Driver, plans: pa.Table) -> None:
    """Send what the batch has decided."""
    written = decisions_of(plans).plans
    driver.services.publisher.publish([one.record(group) for group, one in written.items()])
