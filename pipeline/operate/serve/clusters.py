"""The clusters of one process: usually one, or several if `--tables` or `--config` is repeated.

Each has its own tables. Answers name a cluster only if there are several; each row and link then does. Unreadable
tables of one cluster do not affect the others.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from starlette.requests import Request

from assignor.errors import DecodeError
from pipeline.config.model import Config
from pipeline.errors import StoreError
from pipeline.operate.output import Row
from pipeline.operate.serve.orders import Desk
from pipeline.operate.serve.remembering import remembering
from pipeline.operate.serve.views.source import Now, Source
from pipeline.tables.reading import Tables

PARAMETER = "cluster"
"""Query parameter by which requests name one of several clusters."""

_Found = TypeVar("_Found")


class UnknownClusterError(Exception):
    """A request names no cluster, or an unknown one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Tables of one cluster, and the known settings of the job that writes them."""

    tables: Tables
    config: Config
    desk: Desk | None = None
    """Desk for orders of this cluster; without it, orders are rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One cluster at one moment."""

    cluster: str | None
    """Its name; None if only one cluster is shown."""
    source: Source
    desk: Desk | None
    now: Now | None
    error: str | None = None
    """Why its tables cannot be read."""

    def of(self, read: Callable[[Source, Now], _Found]) -> "tuple[Look, _Found | None]":
        """Read from it; if that fails, return None and a look with the cause."""
        if self.now is None:
            return self, None
        try:
            return self, read(self.source, self.now)
        except (StoreError, DecodeError) as error:
            return replace(self, now=None, error=str(error)), None


class Clusters:
    """All clusters, in the order of the options."""

    def __init__(self, deployments: Sequence[Deployment]) -> None:
        """Read nothing yet; the configuration of the first deployment says how `serve` answers."""
        self.are_several = len(deployments) > 1
        self._given = [
            # With a single cluster, no request waits for another one.
            (one, Source(remembering(one.tables) if self.are_several else one.tables, one.config))
            for one in deployments
        ]
        self.serve = deployments[0].config.serve
        self.sources = [source for _, source in self._given]
        self.token = next((one.desk.token for one in deployments if one.desk), None)
        """The token for orders of any cluster; None if orders are off."""

    def looks(self) -> list[Look]:
        """Return the present look at every cluster; an unreadable one has the reason."""
        found = [_look(one, source) for one, source in self._given]
        if not self.are_several:
            return found
        return [replace(look, cluster=name) for name, look in zip(self.names(), found, strict=True)]

    def look(self, request: Request) -> Look:
        """The cluster of a request.

        Raises:
            UnknownClusterError: There are several, and it names none of them.
        """
        if not self.are_several:
            return _look(*self._given[0])
        number, name = self._number(request)
        return replace(_look(*self._given[number]), cluster=name)

    def asked(self, request: Request) -> list[Look]:
        """Return the cluster that a request names, or all if it names none.

        Raises:
            UnknownClusterError: None of several clusters has this name.
        """
        return (
            [self.look(request)] if self.are_several and PARAMETER in request.query_params else self.looks()
        )

    def chosen(self, request: Request, looks: Sequence[Look]) -> Look | None:
        """Return the cluster that a page is limited to; None if it shows all.

        Raises:
            UnknownClusterError: None of several clusters has this name.
        """
        if not self.are_several or not request.query_params.get(PARAMETER):
            return None
        return looks[self._number(request)[0]]

    def desk(self, request: Request) -> Desk | None:
        """Return the desk for orders of a request's cluster; None if orders are off.

        Raises:
            UnknownClusterError: See `look`.
        """
        if not self.are_several:
            return self._given[0][0].desk
        number, name = self._number(request)
        desk = self._given[number][0].desk
        return None if desk is None else replace(desk, cluster=name)

    def link(self, request: Request) -> str | None:
        """The cluster in the links of an answer."""
        return request.query_params.get(PARAMETER) if self.are_several else None

    def _number(self, request: Request) -> tuple[int, str]:
        wanted = request.query_params.get(PARAMETER)
        configured = [one.config.cluster.name for one, _ in self._given]
        if wanted and configured.count(wanted) == 1:
            # Names of other clusters are not read: their tables may not answer.
            return configured.index(wanted), wanted
        names = self.names()
        if wanted in names:
            return names.index(wanted), wanted
        # A link made while the tables were unreadable has their location instead of the name.
        roots = [one.tables.root for one, _ in self._given]
        if wanted in roots:
            return (number := roots.index(wanted)), names[number]
        cause = f"name one with {PARAMETER}=" if wanted is None else f"{wanted!r} is not shown here"
        raise UnknownClusterError(f"there are several clusters, and {cause}: {', '.join(names)}")

    def names(self) -> list[str]:
        """Return the names of the clusters, with the location of their tables if a name is unknown or not unique."""
        names = [one.config.cluster.name or source.cluster() for one, source in self._given]
        count = Counter(names)
        return [
            one.tables.root if name is None else f"{name} ({one.tables.root})" if count[name] > 1 else name
            for name, (one, _) in zip(names, self._given, strict=True)
        ]


def observed(looks: Sequence[Look]) -> Mapping[str, object]:
    """`observed_at` and `is_old` of several clusters: those of the oldest, or null if one is unknown."""
    times = [look.now.observed_at if look.now else None for look in looks]
    ages = [look.now.is_old if look.now else None for look in looks]
    known = [at for at in times if at is not None]
    return {
        "observed_at": min(known) if len(known) == len(times) else None,
        "is_old": True if True in ages else None if None in ages else False,
    }


def fleet_rows(looks: Sequence[Look]) -> tuple[list[Look], list[Row]]:
    """Return all groups with their clusters' names, and the looks, some of which may have failed."""
    read = [look.of(lambda source, now: source.fleet(now)) for look in looks]
    rows = [
        row if look.cluster is None else {**row, "cluster": look.cluster}
        for look, fleet in read
        if fleet is not None
        for row in fleet.rows.values()
    ]
    return [look for look, _ in read], rows


def causes(looks: Sequence[Look]) -> str:
    """Why no tables can be read, for each cluster."""
    return "; ".join(str(look.error) for look in looks)


def _look(one: Deployment, source: Source) -> Look:
    try:
        now, error = source.now(), None
    except StoreError as problem:
        now, error = None, str(problem)
    return Look(cluster=None, source=source, desk=one.desk, now=now, error=error)
