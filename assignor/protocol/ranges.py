"""Partition numbers as text: ``0-5,9`` for 0, 1, 2, 3, 4, 5, 9.

One form for each set: ascending, without overlap, neighbours joined, a single number alone. The parser takes
nothing else, so equal sets are equal bytes wherever they are compared.
"""

import re
from collections.abc import Iterable

from assignor.errors import DecodeError, EncodeError

MAX_PARTITION = 2**31 - 1

_SPAN = re.compile(r"(0|[1-9][0-9]{0,9})(?:-([1-9][0-9]{0,9}))?(,|\Z)", re.ASCII)


def format_ranges(partitions: Iterable[int]) -> str:
    """The text of a set of partitions, "" for the empty set; order and repetition do not matter.

    Raises:
        EncodeError: A negative partition or one above 2^31 - 1.
    """
    ascending = sorted(set(partitions))
    if ascending and not 0 <= ascending[0] <= ascending[-1] <= MAX_PARTITION:
        raise EncodeError(f"partitions {ascending[0]} to {ascending[-1]}: not in 0 to {MAX_PARTITION}")
    if ascending and ascending[-1] - ascending[0] == len(ascending) - 1:
        spans = [[ascending[0], ascending[-1]]]
    else:
        spans = _spans(ascending)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _spans(ascending: Iterable[int]) -> list[list[int]]:
    spans: list[list[int]] = []
    for partition in ascending:
        if spans and partition == spans[-1][1] + 1:
            spans[-1][1] = partition
        else:
            spans.append([partition, partition])
    return spans


def parse_ranges(text: str, *, at_most: int) -> tuple[int, ...]:
    """The partitions in `text`, ascending.

    Args:
        text: What `format_ranges` gives, and nothing else.
        at_most: Number of partitions above which the text is refused before it is spread out: a dozen
            characters could ask for two thousand million.

    Raises:
        DecodeError: Not in this form, or too many partitions; the position is a character of the text.
    """
    spans: list[range] = []
    position, left = 0, at_most
    while position < len(text):
        span, position = _span_at(text, position, least=spans[-1].stop + 1 if spans else 0)
        left -= len(span)
        if left < 0:
            raise DecodeError(f"more than {at_most} partitions", position)
        spans.append(span)
    return tuple(partition for span in spans for partition in span)


def _span_at(text: str, position: int, *, least: int) -> tuple[range, int]:
    found = _SPAN.match(text, position)
    if found is None or (found[3] and found.end() == len(text)):
        raise DecodeError(f"partition ranges {text[position : position + 20]!r}: not like 0-5,9", position)
    first = int(found[1])
    last = int(found[2] or first)
    if first < least or (found[2] and last <= first) or last > MAX_PARTITION:
        raise DecodeError(f"partition ranges {found[0]!r}: not ascending, not joined or too large", position)
    return range(first, last + 1), found.end()
