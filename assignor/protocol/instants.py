"""Points in time as text: ``2026-01-31T12:00:00.000Z``, always UTC, always milliseconds."""

import re
from datetime import datetime, timedelta, timezone

from assignor.errors import DecodeError, EncodeError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z\Z")


def format_instant(instant_ms: int) -> str:
    """The text of a time given in milliseconds since 1970.

    Raises:
        EncodeError: A time that is not in the years 1 to 9999.
    """
    try:
        instant = _EPOCH + timedelta(milliseconds=instant_ms)
    except OverflowError as error:
        raise EncodeError(f"{instant_ms} ms is not in the years 1 to 9999") from error
    return f"{instant.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def parse_instant(text: str) -> int:
    """Milliseconds since 1970 of what `format_instant` gives; the milliseconds may be left out.

    Raises:
        DecodeError: Another form, or a day or time that does not exist.
    """
    refusal = DecodeError(f"time {text[:40]!a}: not like 2026-01-31T12:00:00.000Z", position=0)
    if not _INSTANT.match(text):
        raise refusal
    try:
        instant = datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc)
    except ValueError:
        raise refusal from None
    return (instant - _EPOCH) // timedelta(milliseconds=1)
