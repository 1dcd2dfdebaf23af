"""The mark of a hand-over: what the commit of a partition says in its metadata when it changes hands.

    metadata   <metadata of the user>lagwise:1:<kind>:<generation>:<epoch>:<hop>

    kind      the commit is made by
    release   the old owner, which has stopped reading the partition: it is the new owner's by the plan of that epoch
    taken     the new owner, before it reads the partition

Anybody who may write to `lagwise.acks` can write an acknowledgement in the name of any member. A commit Kafka takes
only from who may read as the group, and of a member only in the generation that it is in: so the new owner believes
the mark, and an acknowledgement tells it when to look. The next commit of the user has no mark.

confluent-kafka for Python stores a NUL behind all metadata, and leaves it out of what it gives back; other clients do
neither. So a NUL may stand behind the mark.
"""

import re
from dataclasses import dataclass
from typing import Literal

from assignor.protocol.json_fields import MAX_INTEGER

MarkKind = Literal["release", "taken"]

_NUMBER = r"(0|[1-9][0-9]{0,18})"
_MARK = re.compile(rf"lagwise:1:(release|taken):{_NUMBER}:{_NUMBER}:{_NUMBER}\0?\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOverMark:
    """Which hand-over a commit belongs to."""

    kind: MarkKind
    generation: int
    """Generation of the group."""
    epoch: int
    """Epoch of the plan by which the partition changes hands."""
    hop: int
    """As in acknowledgements: number of the hand-over of this partition in this generation, >= 1."""


def with_mark(metadata: str, mark: HandOverMark) -> str:
    """Metadata of the commit: what the user had committed, and the mark behind it."""
    return f"{metadata}lagwise:1:{mark.kind}:{mark.generation}:{mark.epoch}:{mark.hop}"


def split(metadata: str) -> tuple[str, HandOverMark | None]:
    """What is the user's of a commit's metadata, and the mark, if there is one."""
    found = _MARK.search(metadata)
    if found is None:
        return metadata, None
    generation, epoch, hop = (int(number) for number in found.group(2, 3, 4))
    if max(generation, epoch, hop) > MAX_INTEGER:
        return metadata, None
    kind: MarkKind = "release" if found[1] == "release" else "taken"
    return metadata[: found.start()], HandOverMark(kind=kind, generation=generation, epoch=epoch, hop=hop)
