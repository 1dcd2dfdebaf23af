"""Versions of Delta tables: what has been committed to, whatever it was."""

from collections.abc import Iterable

from pipeline.tables.store import Store


def versions_of(store: Store, names: Iterable[str]) -> dict[str, int]:
    """Version of each of these tables that the store knows."""
    return {name: store._table(name).handle.version() for name in names}
