"""Kafka's own code, started once for all tests that ask it."""

from collections.abc import Iterator

import pytest

from tests.oracle.kafka_assignors import KafkaAssignors


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaAssignors]:
    """Kafka's own code."""
    with KafkaAssignors() as running:
        yield running
