"""The claim of a cluster's publisher: a record on the control topic that drivers of all tables can see.

The transactional id lets one producer send at a time. The claim names the tables of that producer, so that a driver of
other tables, a trial for example, does not replace it by accident. Its key names the group with an empty id, which no
consumer group has.
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
    """Delta's id of the tables: a copy has the same one, re-created tables have another."""

    def is_of_same_tables(self, other: "Claim") -> bool:
        """Return whether both publish from the same tables, even if these were lost or moved to another host.

        A copy under another path does not count as the same, nor does the same path on another host.
        """
        return self.root == other.root and (self.host == other.host or self.tables_id == other.tables_id)

    def encode(self) -> str:
        """Value of the record."""
        return json.dumps({"schema": control.SCHEMA, "publisher": asdict(self)}, separators=(",", ":"))


def key_of(cluster: str) -> bytes:
    """Key of the claim's record."""
    return control.encode_key(cluster, GROUP)


def decode(value: bytes | None) -> Claim | None:
    """Return the claim in a record; None without one that this version can read."""
    try:
        told: Mapping[str, Any] = json.loads(value or b"null")["publisher"]
        names = ("owner", "host", "root", "tables_id")
        return Claim(**{name: str(told[name]) for name in names})
    except (ValueError, TypeError, KeyError):
        return None


def is_claim(key: bytes | None) -> bool:
    """Return whether a record of the control topic is a claim, of any cluster, and not a plan."""
    try:
        return control.decode_key(key or b"")[1] == GROUP
    except DecodeError:
        return False
