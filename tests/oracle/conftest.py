"""The oracle, and how often it is asked."""

from collections.abc import Iterator

import pytest

from tests.oracle.kafka_assignors import KafkaAssignors


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaAssignors]:
    """Kafka's own code."""
    with KafkaAssignors() as running:
        yield running
