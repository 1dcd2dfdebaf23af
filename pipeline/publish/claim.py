"""Who publishes for a cluster: a record on the control topic that drivers of all tables can see.

The transactional id lets one producer send at a time; the claim says which tables that producer belongs to, so that a
driver of other tables, a trial for example, does not take its place unasked. Its key names the group without a name,
which no consumer group has.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from assignor.errors import DecodeError
from assignor.protocol import control

GROUP = ""
"""Stands for the group in the key of the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A driver, and the tables that it publishes from."""

    owner: str
    """Name of the driver: host, process and start time."""
    host: str
    root: str
    """Root of the tables, as its host finds them."""
    tables_id: str
    """Delta's id of the tables: a copy has the same one, tables that are made anew another one."""

    def is_of_same_tables(self, other: "Claim") -> bool:
        """Whether both publish from the same tables: also after they were lost, or when another host has them now.

        A copy under another path is something else, and so is the same path on another host.
        """
        return self.root == other.root and (self.host == other.host or self.tables_id == other.tables_id)

    def encode(self) -> str:
        """Value of the record."""
        return json.dumps({"schema": control.SCHEMA, "publisher": asdict(self)}, separators=(",", ":"))


def key_of(cluster: str) -> bytes:
    """Key of the claim's record."""
    return control.encode_key(cluster, GROUP)


def decode(value: bytes | None) -> Claim | None:
    """The claim in a record; None where there is none that this version can read."""
    try:
        told: Mapping[str, Any] = json.loads(value or b"null")["publisher"]
        names = ("owner", "host", "root", "tables_id")
        return Claim(**{name: str(told[name]) for name in names})
    except (ValueError, TypeError, KeyError):
        return None


def is_claim(key: bytes | None) -> bool:
    """Whether a record of the control topic is a claim, of any cluster, and no plan."""
    try:
        return control.decode_key(key or b"")[1] == GROUP
    except DecodeError:
        return False
