"""Store: ownership of the tables. The newest driver owns them; the previous one is fenced.

`planner_state` holds one row: owner and term. A driver that starts takes
a higher term, makes it known to every table (`Store.touch`), and from then on every write of an earlier term is skipped
(`Store`). The earlier driver learns this from `check`, with its next batch at the latest.
"""

import logging
import os
import socket
from typing import NamedTuple

import pyarrow as pa

from pipeline import clock
from pipeline.errors import FencedError, StoreError, TablesSetBackError
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store

_TABLE = "planner_state"
_MINUTE_MS = 60_000

log = logging.getLogger(__name__)


class Owner(NamedTuple):
    """Who owns the tables."""

    name: str
    term: int
    cluster: str


def owner_name(now_ms: int) -> str:
    """Host, process and start time: different for every driver that ever ran."""
    return f"{socket.gethostname()}/{os.getpid()}/{now_ms}"


def acquire(tables: Store, *, cluster: str, owner: str, now_ms: int, above: int = 0) -> Store:
    """Take a term above all before, and fence whoever held the last one.

    Args:
        tables: Open to read.
        cluster: Name of the cluster of the tables.
        owner: Name of this driver.
        now_ms: Time.
        above: Term that this driver had, which the tables may have forgotten.

    Returns:
        The tables, open under the new term.

    Raises:
        FencedError: Another driver took the same term at the same moment, and was first.
        StoreError: The tables belong to another cluster, whose offsets would mix with these.
    """
    last = current(tables)
    if last and last.cluster != cluster:
        raise StoreError(
            f"the tables under {tables.root} belong to cluster {last.cluster!r}, and this driver runs for "
            f"{cluster!r}; "
            "give each cluster a tables.root of its own, or set cluster.name to the former name"
        )
    # Delta skips writes of a term that is not above all that a table has seen, silently.
    # By the clock, as epochs (ADR 0029): tables that were set back to a copy have forgotten later terms, and a
    # suspended driver that wakes with one of them would fence this one. Minutes, because terms have 31 bits.
    known = max(last.term if last else 0, tables.highest_term(), above)
    store = tables.under(max(known, now_ms // _MINUTE_MS) + 1)
    row = {
        "cluster": cluster,
        "owner": owner,
        "term": store.term,
        "acquired_at": clock.at(now_ms),
        "unseen_epochs": None,
    }
    store.write(_TABLE, pa.Table.from_pylist([row]), Stamp(batch_id=-1, at_ms=now_ms))
    check(store, owner)
    store.touch()
    if last:
        log.info("took over", extra={"previous_owner": last.name, "term": store.term})
    return store


def check(store: Store, owner: str) -> None:
    """Look at the tables anew, and return if `owner` still owns them.

    Raises:
        FencedError: Another driver does; the message names it.
        TablesSetBackError: An earlier driver does, or none: somebody has replaced the tables by an older copy.
    """
    store.look()
    present = current(store)
    if present is None or (present.term < store.term and _started_ms(present.name) <= _started_ms(owner)):
        raise TablesSetBackError(
            f"the tables under {store.root} were set back to those of "
            f"{'no driver' if present is None else f'an earlier driver, {present.name} (term {present.term})'}"
        )
    if present != (owner, store.term, present.cluster):
        raise FencedError(
            f"the tables under {store.root} belong to driver {present.name} (term {present.term}) now; this driver "
            f"({owner}, term {store.term}) stops; run one driver per tables.root, or start both with --standby"
        )


def _started_ms(owner: str) -> float:
    """Start of a driver, by its name; a name of another form is taken for that of a later one.

    A later driver may have the lower term: of an older version, or by a clock that is behind.
    """
    started = owner.rpartition("/")[2]
    return int(started) if started.isdecimal() else float("inf")


def current(store: Store) -> Owner | None:
    """Return the owner of the tables; None if they never had one."""
    rows = store.rows(_TABLE, ["owner", "term", "cluster"])
    if not rows:
        return None
    (row,) = rows
    return Owner(row["owner"], row["term"], row["cluster"])
