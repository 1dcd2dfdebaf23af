"""What can be seen of a group from outside, beside its offsets."""

from collections.abc import Mapping
from dataclasses import dataclass

from assignor.model.arrays import Int32s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """The group as its newest record and acknowledgements show it."""

    generation: int
    is_stable: bool
    owner: Int32s
    """Slot of each partition, -1 while it is handed over."""
    member_ids: Mapping[int, str]
    """By the slots of the members that are there."""
    acks: Mapping[int, tuple[str, int]]
    """Slot -> kind and epoch."""
