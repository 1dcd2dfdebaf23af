"""Maintenance with nothing else to do."""

from collections.abc import Mapping

from pipeline.tables.store import Store
from pipeline.tables.upkeep.maintenance import Kept, Round


def run(root: str, *, at_ms: int, keep_days: int, storage_options: Mapping[str, str] = {}) -> None:
    """A whole round, however many times two seconds that takes."""
    kept = Kept(store=Store(root, term=0, storage_options=storage_options), keep_days=keep_days)
    one = Round()
    one.begin()
    one.work(kept, at_ms=at_ms, spare_s=0, begins=lambda _doing: None, is_whole=True)
