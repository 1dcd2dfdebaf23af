"""How values read on the page: as in the text of the commands, with units that people read."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from pipeline.operate.listings.statuses import meaning_of
from pipeline.operate.output import NONE, plain
from pipeline.operate.serve.clusters import PARAMETER
from pipeline.operate.serve.orders import PATH, STANDING_PATH
from pipeline.operate.serve.page.names import abbreviated, member_name

_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_STATUS_CLASSES = {
    "OK": "good",
    "WARN": "fair",
    "REWIND": "fair",
    "NOT_COMMITTED": "fair",
    "STALL": "bad",
    "STOP": "bad",
    "EXPIRED": "bad",
}


def number(value: float | None, *, at_least: object = False) -> Markup:
    """A number with thousands apart, as `<data>` with its exact value; `-` for none.

    Args:
        value: The number.
        at_least: It would be larger if all were known.
    """
    if value is None:
        return escape(NONE)
    text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
    return _data(value, text, "at least " if at_least else "")


def duration(seconds: float | None, *, at_least: object = False, at_most: object = False) -> Markup:
    """A time in the unit that fits, as `<data>` with its exact seconds; `-` for none.

    Args:
        seconds: The time.
        at_least: It would be longer if all were known.
        at_most: It would be shorter.
    """
    if seconds is None:
        return escape(NONE)
    return _data(seconds, _duration(seconds), "at least " if at_least else "at most " if at_most else "")


def _data(value: float, text: str, bound: str) -> Markup:
    # Of numbers, so there is nothing to escape; `Markup.format` takes ten times as long.
    return Markup(f'{bound}<data value="{value}">{text}</data>')  # noqa: S704 - as above


def drain(seconds: float | None) -> Markup:
    """A time to drain; without one, the group never gets there, or nobody knows."""
    return Markup('<span class="quiet">never or unknown</span>') if seconds is None else duration(seconds)


def share(ratio: float | None) -> Markup:
    """A ratio in percent."""
    if ratio is None:
        return escape(NONE)
    return _data(ratio, f"{100 * ratio:.0f} %", "")


def moment(at: datetime | None) -> Markup:
    """A time in UTC."""
    if at is None:
        return escape(NONE)
    return Markup('<time datetime="{}">{}</time>').format(plain(at), f"{at:%Y-%m-%d %H:%M:%S}")


@cache
def status_tag(status: str) -> Markup:
    """A status in its colour; a bad one says what it means."""
    colour = _STATUS_CLASSES.get(status, "none")
    meaning = meaning_of(status) if colour == "bad" else ""
    title = Markup(' title="{}"').format(meaning) if meaning else ""
    return Markup('<span class="status {}"{}>{}</span>').format(colour, title, status)


def group_url(group_id: str, cluster: str | None = None) -> str:
    """Of a group's page: its name stands in the query, where `..` and `/` mean nothing."""
    return f"/group?id={quote(group_id, safe='')}{_of(cluster, '&')}"


def approve_url(group_id: str, cluster: str | None) -> str:
    """Where the approval of its plan is ordered. A browser would change line ends in the value of a form's field."""
    return f"{PATH}?id={quote(group_id, safe='')}{_of(cluster, '&')}"


def order_url(group_id: str, cluster: str | None) -> str:
    """Where pauses and pins of the group are ordered."""
    return f"{STANDING_PATH}?id={quote(group_id, safe='')}{_of(cluster, '&')}"


def api_url(group_id: str, rest: str = "", cluster: str | None = None) -> str:
    """Of the same as JSON."""
    return f"/api/v1/groups/{quote(group_id, safe='')}{rest}{_of(cluster, '?')}"


def _of(cluster: str | None, sign: str) -> str:
    return "" if cluster is None else f"{sign}{PARAMETER}={quote(cluster, safe='')}"


FILTERS: Mapping[str, Any] = {
    "number": number,
    "duration": duration,
    "drain": drain,
    "share": share,
    "moment": moment,
    "plain": plain,
    "status_tag": status_tag,
    "meaning": meaning_of,
    "abbreviated": abbreviated,
    "member_name": member_name,
    "group_url": group_url,
    "api_url": api_url,
    "approve_url": approve_url,
    "order_url": order_url,
}
"""By the names that templates use."""


def _duration(seconds: float) -> str:
    if seconds < 2 * _MINUTE:
        return f"{seconds:.1f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.1f} min"
    return f"{seconds / _HOUR:.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.1f} d"
