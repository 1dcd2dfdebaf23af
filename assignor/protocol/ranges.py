"""Partition numbers as text: ``0-5,9`` for 0, 1, 2, 3, 4, 5, 9.

One form for each set: ascending, without overlap, neighbours joined, a single number alone. The parser takes
nothing else, so equal sets are equal bytes wherever they are compared.
"""

import operator
import re
from collections.abc import Iterable
from itertools import chain

from assignor.errors import DecodeError, EncodeError

MAX_PARTITION = 2**31 - 1
_LONGEST_SPAN = 22
"""Characters of a span of two numbers of ten digits, and the comma."""
_APART = 2
"""Least step from the last of a span to the first of the next: neighbours are one span."""

_SPAN = re.compile(r"(0|[1-9][0-9]{0,9})(?:-([1-9][0-9]{0,9}))?(,|\Z)", re.ASCII)


def format_ranges(partitions: Iterable[int]) -> str:
    """The text of a set of partitions, "" for the empty set; order and repetition do not matter.

    Raises:
        EncodeError: A negative partition or one above 2^31 - 1.
    """
    ascending = sorted(set(partitions))
    if ascending and not 0 <= ascending[0] <= ascending[-1] <= MAX_PARTITION:
        raise EncodeError(f"partitions {ascending[0]} to {ascending[-1]}: not in 0 to {MAX_PARTITION}")
    # Most members hold partitions that are all neighbours, or that have none.
    if ascending and ascending[-1] - ascending[0] == len(ascending) - 1:
        return format_spans([(ascending[0], ascending[-1])])
    return format_spans(_spans(ascending))


def _spans(ascending: list[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    first = last = -2
    for partition in ascending:
        if partition != last + 1:
            spans.append((first, last))
            first = partition
        last = partition
    return [*spans[1:], (first, last)] if ascending else []


def format_spans(spans: Iterable[tuple[int, int]]) -> str:
    """The text of spans from first to last, ascending, of which no two are neighbours."""
    return ",".join([f"{first}" if first == last else f"{first}-{last}" for first, last in spans])


def parse_ranges(text: str, *, at_most: int) -> tuple[int, ...]:
    """The partitions in `text`, ascending.

    Args:
        text: What `format_ranges` gives, and nothing else.
        at_most: Number of partitions above which the text is refused before it is spread out: a dozen
            characters could ask for two thousand million.

    Raises:
        DecodeError: Not in this form, or too many partitions; the position is a character of the text.
    """
    firsts, lasts = _written_spans(text)
    n = sum(lasts) - sum(firsts) + len(firsts)
    if not firsts or n > at_most:
        return _parsed_by_position(text, at_most=at_most)
    if n == len(firsts):
        return tuple(firsts)
    return tuple(chain.from_iterable(map(range, firsts, [last + 1 for last in lasts])))


def _written_spans(text: str) -> tuple[list[int], list[int]]:
    """First and last partition of each span of text that `format_ranges` has written; nothing for any other text.

    Thousands of groups have plans of hundreds of spans each. To read them leniently, write them again and compare
    takes a fifth of the time that it takes to look at each of them.
    """
    parts = text.split(",")
    if not text or len(text) > _LONGEST_SPAN * len(parts):
        return [], []
    try:
        firsts, lasts = _read_leniently(parts)
    except ValueError:
        return [], []
    is_apart = min(map(operator.sub, firsts[1:], lasts), default=_APART) >= _APART
    is_rising = min(map(operator.sub, lasts, firsts)) >= 0
    in_range = firsts[0] >= 0 and lasts[-1] <= MAX_PARTITION
    is_same = is_apart and is_rising and in_range and format_spans(zip(firsts, lasts, strict=True)) == text
    return (firsts, lasts) if is_same else ([], [])


def _read_leniently(parts: list[str]) -> tuple[list[int], list[int]]:
    ends = [part.partition("-") for part in parts]
    return [int(first) for first, _, _ in ends], [int(last or first) for first, _, last in ends]


def _parsed_by_position(text: str, *, at_most: int) -> tuple[int, ...]:
    """The same, one span after the other: it can say where the text is wrong.

    Raises:
        DecodeError: As `parse_ranges`.
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
