"""Times on the command line."""

import re
from datetime import datetime, timedelta, timezone
from typing import Annotated

import typer

SinceOption = Annotated[
    str, typer.Option(metavar="TIME", help="Start: 15m, 1h or 7d ago, or a date or time.")
]

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_time(text: str, *, now: datetime) -> datetime:
    """The time of a text, in UTC: `90s`, `15m`, `1h` or `7d` before `now`, or an ISO 8601 date or time.

    A date or time without an offset is in UTC.

    Raises:
        typer.BadParameter: It is neither.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        # Python 3.10 cannot read the Z of log files.
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        # In UTC, because its date is compared with those that the tables are partitioned by.
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is not a time; write 15m, 1h or 7d for a time ago, or 2026-01-31T12:00:00Z"
        ) from None
