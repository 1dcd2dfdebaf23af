"""Format of values on the page: as in the commands' text, with readable units."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from pipeline.operate.listings.decisions import NEVER_OR_UNKNOWN, no_time
from pipeline.operate.output import NONE, plain, span_text
from pipeline.operate.serve.clusters import PARAMETER
from pipeline.operate.serve.orders import PATH, STANDING_PATH
from pipeline.operate.serve.page.names import abbreviated, member_name
from pipeline.operate.statuses import status_of


def number(value: float | None, *, at_least: object = False) -> Markup:
    """A number with thousands apart, as `<data>` with its exact value; `-` for none.

    With `at_least` it would be larger if all were known.
    """
    if value is None:
        return escape(NONE)
    text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
    return _data(value, text, "at least " if at_least else "")


def duration(seconds: float | None, *, at_least: object = False, at_most: object = False) -> Markup:
    """A time in the unit that fits, as `<data>` with its exact seconds; `-` for none.

    With `at_least` it would be longer if all were known, with `at_most` shorter.
    """
    if seconds is None:
        return escape(NONE)
    return _data(
        seconds, span_text(seconds, decimals=1), "at least " if at_least else "at most " if at_most else ""
    )


def _data(value: float, text: str, bound: str) -> Markup:
    # Only numbers, so there is nothing to escape; `Markup.format` takes ten times as long.
    return Markup(f'{bound}<data value="{value}">{text}</data>')  # noqa: S704 - as above


def drain(seconds: float | None, decision: Mapping[str, Any] | None = None) -> Markup:
    """Format a time to drain; with the decision that has a missing one, it is never or unknown, else either."""
    if seconds is not None:
        return duration(seconds)
    return Markup('<span class="quiet">{}</span>').format(
        NEVER_OR_UNKNOWN if decision is None else no_time(decision)
    )


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
    """Format a status in its colour; explain a bad one."""
    level, meaning = status_of(status)
    title = Markup(' title="{}"').format(meaning) if level == "bad" else ""
    return Markup('<span class="status {}"{}>{}</span>').format(level, title, status)


def group_url(group_id: str, cluster: str | None = None, *, path: str = "/group") -> str:
    """URL of a group's page, or of the path for its orders.

    The name is in the query, where `..` and `/` have no meaning and browsers do not change line ends.
    """
    return f"{path}?id={quote(group_id, safe='')}{_of(cluster, '&')}"


def api_url(group_id: str, rest: str = "", cluster: str | None = None) -> str:
    """URL of the same group as JSON."""
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
    "meaning": lambda status: status_of(status).meaning,
    "abbreviated": abbreviated,
    "member_name": member_name,
    "group_url": group_url,
    "api_url": api_url,
    "approve_url": partial(group_url, path=PATH),
    "order_url": partial(group_url, path=STANDING_PATH),
}
"""By the names that templates use."""
