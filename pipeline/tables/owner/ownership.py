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


def acquire(tables: Store, *, cluster: str, owner: str, now_ms: int) -> Store:
    """Take a term above all before, and fence whoever held the last one.

    Args:
        tables: Open to read.
        cluster: Name of the cluster of the tables.
        owner: Name of this driver.
        now_ms: Time.

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
    known = max(last.term if last else 0, tables.highest_term())
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
    if present is None or present.term < store.term:
        raise TablesSetBackError(
            f"the tables under {store.root} were set back to those of "
            f"{'no driver' if present is None else f'an earlier driver, {present.name} (term {present.term})'}"
        )
    if present != (owner, store.term, present.cluster):
        raise FencedError(
            f"the tables under {store.root} belong to driver {present.name} (term {present.term}) now; this driver "
            f"({owner}, term {store.term}) stops; run one driver per tables.root, or start both with --standby"
        )


def current(store: Store) -> Owner | None:
    """Return the owner of the tables; None if they never had one."""
    rows = store.rows(_TABLE, ["owner", "term", "cluster"])
    if not rows:
        return None
    (row,) = rows
    return Owner(row["owner"], row["term"], row["cluster"])
