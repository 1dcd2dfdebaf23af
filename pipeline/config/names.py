"""Suggestions for unknown keys."""

import difflib
from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel

from pipeline.config.model import Config

_LIKENESS = 0.7
"""Least similarity (difflib's ratio) of a helpful guess."""


def known_keys() -> tuple[str, ...]:
    """Every key as a dotted name, in the order of the file, tables before their keys."""
    return tuple(_keys(Config))


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        if info.json_schema_extra is not None:
            continue  # An earlier name of another key, which is never suggested.
        yield f"{prefix}{name}"
        for kind in (info.annotation, *get_args(info.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _keys(kind, f"{prefix}{name}.")


def advice(location: tuple[int | str, ...]) -> str:
    """The text after "unknown key; ": the right table, or the nearest name, or all keys of the table."""
    *table_parts, leaf = (str(part) for part in location if isinstance(part, str))
    table = ".".join(table_parts)
    if table == "kafka":
        return f'properties of the Kafka client belong to [kafka.properties], as "{leaf}..." = "..."'
    homes = _homes()
    if leaf in homes:
        return f"it belongs to {' or '.join(f'[{home}]' for home in homes[leaf])}"
    siblings = [name for name in homes if table in homes[name]]
    near = difflib.get_close_matches(leaf, siblings, n=1, cutoff=_LIKENESS)
    if near:
        return f'did you mean "{near[0]}"?'
    elsewhere = difflib.get_close_matches(leaf, homes, n=1, cutoff=_LIKENESS)
    if elsewhere:
        return f'did you mean "{elsewhere[0]}" in [{homes[elsewhere[0]][0]}]?'
    return f"the keys here are {', '.join(siblings)}"


def _homes() -> dict[str, list[str]]:
    """Tables that have a key, by the name of the key."""
    homes: dict[str, list[str]] = {}
    for key in known_keys():
        home, _, name = key.rpartition(".")
        homes.setdefault(name, []).append(home)
    return homes
