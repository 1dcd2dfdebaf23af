"""The present tables for one answer: opened together, with all groups and their age."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import StoreError
from pipeline.operate.health import sight
from pipeline.operate.listings.spans import longest_gap
from pipeline.operate.serve.newest import Newest
from pipeline.operate.serve.snapshot import Snapshot, snapshot
from pipeline.operate.serve.views.facts import COLUMNS
from pipeline.operate.serve.views.fleet import Fleet, fleet_of
from pipeline.operate.serve.views.history import Past, Series, past_of
from pipeline.operate.serve.views.sparks import Sparks
from pipeline.tables.owner.health import Health, Sight, judge
from pipeline.tables.reading import Tables

_NOT_IN_OLD_ONES = ("group_history",)
_NAMES = (*COLUMNS, "recommendations", "lag_history", *_NOT_IN_OLD_ONES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """One version of the tables, and observations of the moment."""

    found: Snapshot
    seen: Sight | None
    """Observations of the driver; None if its heartbeat cannot be read."""
    at_ms: int

    @property
    def observed_at(self) -> datetime | None:
        """Clock of the newest batch; None before the first."""
        return self.found.observed_at

    @property
    def end(self) -> datetime:
        """End of charts over time: the newest batch, or now before the first."""
        return self.observed_at or clock.at(self.at_ms)

    @property
    def age_s(self) -> float | None:
        """Age of the newest batch; None before the first."""
        stamp = self.found.stamp
        return None if stamp is None else stamp.age_s(self.at_ms)

    @property
    def health(self) -> Health | None:
        """Health of the stream; None if that is unknown."""
        return None if self.seen is None else judge(self.seen, now_ms=self.at_ms)

    @property
    def is_old(self) -> bool | None:
        """Return whether the tables are out of date; None if unknown."""
        health = self.health
        return None if health is None or health.state == "unknown" else not health.is_ready


class Source:
    """Opens the tables for each answer; expensive data is computed once per version."""

    def __init__(self, tables: Tables, config: Config) -> None:
        self.tables = tables
        self.config = config
        self._fleet = Newest[tuple[int, ...], Fleet]()
        self.max_gap = longest_gap(config)
        self._sparks = Sparks(max_gap=self.max_gap)
        # Another process may show the same versions under other settings.
        self._past = Newest[tuple[tuple[int, ...], str, datetime], Past | None]()
        self._token = secrets.token_hex(4)
        self._cluster: str | None = None

    def now(self) -> Now:
        """Open the newest version of the tables.

        Raises:
            MissingTableError: The stream has not made them yet.
            StoreError: They cannot be opened, or have no known time.
        """
        found = snapshot(self.tables, _NAMES, may_miss=_NOT_IN_OLD_ONES)
        stamp = found.stamp
        try:
            seen = sight(self.tables, stamp, self.config)
        except StoreError:
            seen = None
        return Now(found=found, seen=seen, at_ms=clock.now_ms())

    def cluster(self) -> str | None:
        """The cluster's name: `cluster.name`, or else Kafka's id; None if it cannot be read."""
        if self._cluster is None:
            try:
                rows = self.tables.open("planner_state").read(columns=("cluster",))
            except StoreError:
                return None
            # Tables never change their cluster; there is no row before the first start of a driver.
            self._cluster = next(iter(rows["cluster"].to_pylist()), None)
        return self._cluster

    def fleet(self, now: Now) -> Fleet:
        """All groups.

        Raises:
            StoreError: The tables cannot be read.
        """
        return self._fleet.of(now.found.versions, lambda: fleet_of(now.found, self.config))

    def past(self, now: Now, group_id: str, spans: Sequence[timedelta]) -> Past | None:
        """As `past_of`, with the same spans each time; one group is read at a time, which bounds the memory.

        Raises:
            StoreError: The tables cannot be read.
        """
        return self._past.of(
            (now.found.versions, group_id, now.end),
            lambda: past_of(now.found, group_id, end=now.end, spans=spans, max_gap=self.max_gap),
        )

    def sparks(self, now: Now) -> Mapping[str, Series]:
        """Lag over the last hour by group, without groups that have no history.

        Raises:
            StoreError: The tables cannot be read.
        """
        return self._sparks.of(now.found, end=now.end)

    def tag(self, now: Now) -> str:
        """A tag that is equal for equal answers."""
        versions = "-".join(map(str, now.found.versions))
        return f"{self._token}-{versions}-{now.is_old}"
