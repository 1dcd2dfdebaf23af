"""Secrets in settings: references that are resolved late, and masks for output.

A value `env:NAME` refers to an environment variable and `file:/path` to the text of a file (without its last line end).
Settings carry references wherever they travel; only the creation of a client resolves them. `file://...` is a URL that
some clients take, and no reference.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import ConfigError

MASK = "****"

_SECRET_NAME = re.compile(r"password|secret|key|token|jaas|credential", re.IGNORECASE)
_OF_JAVA = re.compile(r"((?:password|secret|token|credential)\w*=)\S*", re.IGNORECASE)
"""A secret among the options of a JVM, such as `-Djavax.net.ssl.trustStorePassword=…`."""
_LOGIN = re.compile(r"://[^/@\s]+:[^/@\s]+@")
"""User and password in a URL."""
# The source and audience of a key or token are no secrets, and seeing them helps when they are wrong.
_PLACE_NAME = re.compile(r"\.(location|key\.file|endpoint\.url|client\.id)$", re.IGNORECASE)


def is_reference(value: str) -> bool:
    """Whether `value` refers to a secret instead of being one."""
    return value.startswith("env:") or (value.startswith("file:") and not value.startswith("file://"))


def is_plain_secret(name: str, value: str) -> bool:
    """Whether the setting `name` has a secret in plain text as its value."""
    is_named = bool(_SECRET_NAME.search(name)) and not (_PLACE_NAME.search(name) and "@" not in value)
    return (is_named or _is_in_text(name, value)) and bool(value) and not is_reference(value)


def _is_in_text(name: str, value: str) -> bool:
    """True if the value contains a secret, whatever the name of the setting."""
    if name.endswith("oauthbearer.config"):
        # The argument of a function or of librdkafka may contain a secret, or only a region.
        return bool(_SECRET_NAME.search(value))
    is_of_java = name.endswith("JavaOptions") and bool(_OF_JAVA.search(value))
    return is_of_java or bool(_LOGIN.search(value))


def masked(settings: Mapping[str, str]) -> dict[str, str]:
    """`settings` for output: plain secrets are replaced by `****`, references and other Java options stay."""
    return {name: _shown(name, value) for name, value in settings.items()}


def _shown(name: str, value: str) -> str:
    if not is_plain_secret(name, value):
        return value
    # A secret in quotation marks may go on after a space.
    if not name.endswith("JavaOptions") or re.search(r"[\"'\\]", value):
        return MASK
    shown = _OF_JAVA.sub(rf"\1{MASK}", value)
    return MASK if shown == value or _LOGIN.search(shown) else shown


def resolve(settings: Mapping[str, str]) -> dict[str, str]:
    """`settings` with every reference resolved on this machine.

    Raises:
        ConfigError: A variable is not set or a file cannot be read; the message has the setting's name and
            the reference, never a value.
    """
    return {name: _resolved(name, value) for name, value in settings.items()}


def _resolved(name: str, value: str) -> str:
    if not is_reference(value):
        return value
    kind, _, target = value.partition(":")
    if kind == "env":
        if target not in os.environ:
            raise ConfigError(
                f"{name}: environment variable {target} is not set on this machine; set it, or correct the reference"
            )
        return os.environ[target]
    try:
        return Path(target).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{name}: the secret's file {target} cannot be read: {why}") from None
