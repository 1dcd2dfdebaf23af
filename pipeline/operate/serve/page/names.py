"""Display names of a group's members, and texts that use them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

from pipeline.operate.output import Row, plain

_LEAST_TAIL = 4
_LEAST_ID = 16
"""Kafka's member ids are longer; what is shorter may be a word."""
_UUID = re.compile(r"-?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD = re.compile(r"[^\s,;()]*[^\s,;:().]")


def member_names(members: Iterable[Row]) -> dict[str, str]:
    """Names of members by id: instance, client or member id; names that several share also get the end of the id."""
    sharing: dict[str, list[str]] = defaultdict(list)
    for one in members:
        if one["member_id"] is not None:
            name = one["group_instance_id"] or one["client_id"] or _UUID.sub("", one["member_id"])
            sharing[plain(name)].append(one["member_id"])
    names: dict[str, str] = {}
    for name, ids in sharing.items():
        length = _telling(ids)
        names |= {one: _with_end(name, one[-length:]) if len(ids) > 1 or not name else name for one in ids}
    return names


def member_name(member_id: str, names: Mapping[str, str]) -> str:
    """The name of a member, which may have left, among the `member_names` of its group."""
    known = names.get(member_id)
    if known is not None or not _UUID.search(member_id):
        return known or plain(member_id)
    return _with_end(plain(_UUID.sub("", member_id)), member_id[-_LEAST_TAIL:])


def abbreviated(text: str, names: Mapping[str, str]) -> Markup:
    """A text, such as a reason, with `member_names` in place of ids; the title of each is the id."""
    parts, end = [], 0
    for found in _WORD.finditer(text):
        name = member_name(found[0], names)
        if len(found[0]) >= _LEAST_ID and len(name) < len(found[0]):
            short = Markup('<abbr title="{}">{}</abbr>').format(found[0], name)
            parts += [escape(text[end : found.start()]), short]
            end = found.end()
    return Markup().join((*parts, escape(text[end:])))


def _with_end(name: str, end: str) -> str:
    return f"{name} \u2026{plain(end)}".strip()


def _telling(ids: Sequence[str]) -> int:
    """Length of the ends by which these ids differ."""
    longest = max(map(len, ids))
    return next(
        (length for length in range(_LEAST_TAIL, longest) if len({one[-length:] for one in ids}) == len(ids)),
        longest,
    )
