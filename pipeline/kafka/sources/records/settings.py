"""Source: settings of record reads, for who passes them on without reading."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """Settings of a worker that reads."""

    properties: Mapping[str, str]
    """librdkafka properties; references to secrets are still unresolved, executors resolve their own."""
    timeout_s: float
    """Time without progress after which a span is abandoned."""
    passes_over: frozenset[str] = frozenset()
    """Topics whose records do not hold up reading if they cannot be unpacked."""
