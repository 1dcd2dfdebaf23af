"""Values of the configuration: types of its keys, with bounds and validation."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from assignor.strategies.catalogue import CATALOGUE
from pipeline.config.secret_values import is_reference
from pipeline.name_filter import NameFilter

Seconds = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=1)]
Duration = Annotated[int, Field(ge=0)]
"""Seconds; 0 for no limit."""


def _pattern(text: str) -> str:
    try:
        NameFilter((text,))
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from None
    return text


def _strategy(name: str) -> str:
    if name not in CATALOGUE:
        raise ValueError(f"must be one of {', '.join(CATALOGUE)}")
    return name


def _dry_run(value: object) -> object:
    if isinstance(value, bool) or value == "approve":
        return value
    raise ValueError('must be true, false or "approve"')


def reference(text: str) -> str:
    """A reference to a secret, or nothing."""
    if text and not is_reference(text):
        raise ValueError('must be "env:NAME" or "file:/path"')
    return text


def function_name(text: str) -> str:
    """`module:function`, or nothing."""
    if text and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", text):
        raise ValueError('must be "module:function", such as "company.kafka_tokens:token"')
    return text


def mechanism(properties: Mapping[str, str]) -> str:
    """The SASL mechanism of librdkafka, in upper case; empty without one."""
    return (properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "").upper()


def origin(text: str) -> str:
    """An origin as browsers send it, in lower case."""
    if not re.fullmatch(r"https?://[^/?#@\s]+", text):
        raise ValueError('must be like "https://lagwise.example.com", without a path')
    return text.lower()


def host_name(name: str) -> str:
    """A host name in lower case."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,253}", name):
        raise ValueError('must be a name like "lagwise.example.com", without a port')
    return name.lower()


def _database_name(name: str) -> str:
    # Every metastore takes such names without quotes; Hive's allows no others.
    if name and not re.fullmatch(r"[a-z][a-z0-9_]{0,127}", name):
        raise ValueError(
            "must be a database name: a lower-case letter, then up to 127 lower-case letters, digits and underscores"
        )
    return name


def _topic_name(name: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name):
        raise ValueError("must be a topic name: 1 to 249 letters, digits, dots, underscores and hyphens")
    return name


def _flat(table: object) -> object:
    """Properties by dotted name, all as text, whether or not TOML has their names in quotes.

    Without quotes, `ssl.ca.location = "x"` is three nested tables in TOML.
    """
    if not isinstance(table, Mapping):
        return table
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            inner = _flat(value)
            if isinstance(inner, Mapping):
                flat.update({f"{name}.{rest}": text for rest, text in inner.items()})
        else:
            flat[name] = _as_text(value)
    return flat


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Properties = Annotated[dict[str, str], BeforeValidator(_flat)]
Pattern = Annotated[str, AfterValidator(_pattern)]
# TOML has arrays where Python has tuples; nothing else is converted.
Patterns = Annotated[tuple[Pattern, ...], Field(strict=False)]
Follow = Literal["members", "broker"]
"""What applies plans of a KIP-848 group."""
DryRun = Annotated[bool | Literal["approve"], PlainValidator(_dry_run)]
StrategyName = Annotated[str, AfterValidator(_strategy)]
TopicName = Annotated[str, AfterValidator(_topic_name)]
DatabaseName = Annotated[str, AfterValidator(_database_name)]
TopicByPrefix = Annotated[dict[Annotated[str, Field(min_length=1)], TopicName], BeforeValidator(_flat)]
"""Topic by prefix of the group name."""
