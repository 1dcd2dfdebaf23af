"""What people call the members of a group."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pipeline.operate.output import Row, plain

_LEAST_TAIL = 4


def member_names(members: Iterable[Row]) -> dict[str, str]:
    """By member id: its instance id, its client id, or else its member id; those that share one with its end besides.

    Args:
        members: The `member_rows` of one group.
    """
    sharing: dict[str, list[str]] = defaultdict(list)
    for one in members:
        if one["member_id"] is not None:
            name = one["group_instance_id"] or one["client_id"] or one["member_id"]
            sharing[plain(name)].append(one["member_id"])
    names: dict[str, str] = {}
    for name, ids in sharing.items():
        length = _telling(ids)
        names |= {one: f"{name} \u2026{plain(one[-length:])}" if len(ids) > 1 else name for one in ids}
    return names


def _telling(ids: Sequence[str]) -> int:
    """How much of their ends tells these ids apart."""
    longest = max(map(len, ids))
    return next(
        (length for length in range(_LEAST_TAIL, longest) if len({one[-length:] for one in ids}) == len(ids)),
        longest,
    )
