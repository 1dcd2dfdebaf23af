"""What aiokafka does not offer: to join the group again, and who it is there: member id and generation.

Everything here leans on private parts of aiokafka 0.14.0, so the version is pinned, and a test of this module fails
when a release changes them.
"""

from aiokafka import AIOKafkaConsumer


def request_rejoin(consumer: AIOKafkaConsumer) -> None:
    """Make the member join its group again; the consumer has been started."""
    consumer._coordinator.request_rejoin()  # noqa: SLF001 - there is no public call for it


def generation_of(consumer: AIOKafkaConsumer) -> int:
    """Generation of the group that the consumer joined last; it has been started."""
    return int(consumer._coordinator.generation)  # noqa: SLF001 - assignors are not told it


def member_id_of(consumer: AIOKafkaConsumer) -> str:
    """Member id in that generation."""
    return str(consumer._coordinator.member_id)  # noqa: SLF001 - only what it has assigned is public
