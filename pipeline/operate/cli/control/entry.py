"""One record of the control topic, as `lagwise control tail` shows it."""

import json
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

from assignor.errors import DecodeError
from assignor.protocol.control import decode
from pipeline import clock
from pipeline.operate.output import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record and its decoded content."""

    partition: int
    offset: int
    written_at: str
    """Timestamp of the record, ISO 8601 in UTC; milliseconds since 1970 beyond the year 9999."""
    key: str
    """Key as text; undecodable bytes are escaped."""
    record: dict[str, Any] | None
    """The plan; null if it is withdrawn or damaged."""
    damaged: str | None
    """Why the value is no plan; null for a plan or a withdrawal."""

    def as_text(self) -> str:
        """One line for people."""
        head = f"{self.written_at}  {self.partition}@{self.offset}"
        if self.damaged is not None:
            return f"{head}  {plain(self.key)}  damaged: {plain(self.damaged)}"
        if self.record is None:
            return f"{head}  {plain(self.key)}  withdrawn"
        plan = self.record
        moves = len(plan.get("moves", ()))
        by = " by the broker" if plan.get("group_protocol") == "consumer" else ""
        mode = "dry run" if plan["dry_run"] else f"to be followed{by}"
        return (
            f"{head}  {plain(plan['group'])}  epoch {plan['epoch']}  {plain(plan['strategy'])}  "
            f"{moves} move{'' if moves == 1 else 's'}  {mode} until {plan['valid_until']}"
        )


def entry(message: Message) -> Entry:
    """The entry of `message`; a value that is not a control record makes a damaged entry, never an error."""
    value = message.value()
    record, damaged = (None, None) if value is None else _decoded(value)
    return Entry(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        written_at=_iso(message.timestamp()[1]),
        key=(message.key() or b"").decode("utf-8", "backslashreplace"),
        record=record,
        damaged=damaged,
    )


def _decoded(value: bytes) -> tuple[dict[str, Any] | None, str | None]:
    try:
        decode(value)
    except DecodeError as error:
        return None, str(error)
    # As published, including fields that this version does not know.
    return json.loads(value), None


def _iso(timestamp_ms: int) -> str:
    try:
        moment = clock.at(timestamp_ms)
    except (ValueError, OverflowError, OSError):
        # Producers may write any number.
        return f"{timestamp_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
