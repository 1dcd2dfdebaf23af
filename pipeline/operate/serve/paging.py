"""Partitions of one group, a page at a time.

A page begins after the last partition of the previous one, not at a number: created and deleted partitions shift
nothing, so a partition that exists throughout is in exactly one page.
"""

import base64
import json
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

PAGE, MOST_OF_A_PAGE = 1_000, 10_000
"""Rows of a page, unless the request says otherwise, and at most."""


class Place(NamedTuple):
    """A partition, after which a page begins."""

    topic: str
    partition: int


def page_of(rows: pa.Table, *, after: Place | None, limit: int) -> tuple[pa.Table, Place | None]:
    """The first `limit` rows of a group after a partition, or from the start, and the last one if others follow it.

    The rows are in the order of topic and partition.
    """
    if after is not None:
        topic, partition = rows["topic"], rows["partition"]
        is_later = pc.or_(
            pc.greater(topic, after.topic),
            pc.and_(pc.equal(topic, after.topic), pc.greater(partition, after.partition)),
        )
        rows = rows.filter(is_later)
    shown = rows.slice(0, limit)
    if shown.num_rows == rows.num_rows:
        return shown, None
    return shown, Place(shown["topic"][-1].as_py(), shown["partition"][-1].as_py())


def token_of(place: Place) -> str:
    """The place as text for a URL."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode("ascii").rstrip("=")


def place_of(token: str) -> Place:
    """The place that a token names.

    Raises:
        ValueError: It names none.
    """
    padded = token + "=" * (-len(token) % 4)
    try:
        value = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    except RecursionError as error:
        raise ValueError("no place") from error
    match value:
        case [str(topic), int(partition)] if -(2**31) <= partition < 2**31:
            # Half of a surrogate pair, which Arrow does not take, fails here.
            topic.encode()
            return Place(topic, partition)
    raise ValueError("no place")
