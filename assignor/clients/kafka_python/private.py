"""What kafka-python does not offer: to join the group again, to see a join that nobody finishes, or a loss within one.

Everything here leans on private parts of kafka-python 3.0.12, so the version is pinned, and a test of this module
fails when a release changes them.
"""

from kafka import KafkaConsumer


def request_rejoin(consumer: KafkaConsumer) -> None:
    """Make the member join its group again, at its next poll."""
    consumer._coordinator.request_rejoin()  # noqa: SLF001 - there is no public call for it


def is_stuck(consumer: KafkaConsumer) -> bool:
    """Whether a join was begun that no poll will finish; ask between polls, in the thread that polls.

    A leader that joins because metadata changed needs no rejoin any more once it has assigned, and if its poll ends
    just then, no other poll looks at the join again: the member reads nothing and is evicted in the end. A
    requested rejoin makes the next poll finish it.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no public call for it
    return bool(coordinator.rebalance_in_progress() and not coordinator.need_rejoin())


def lost_within_join(consumer: KafkaConsumer) -> bool:
    """Whether the consumer lost its membership in a join and still has partitions; that join then begins again.

    The client looks for a loss where a join begins, and tells its user of it there. When the broker refuses a member
    in the middle of one, as it does with a process that was stopped for too long, it tries again with what it had;
    given something else, it tells its user of a revocation, and the commit made there counts. The Java client
    looks again (`AbstractCoordinator.resetStateAndRejoin`), and so does this one when its join begins again.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no public call for it
    generation = coordinator._generation  # noqa: SLF001 - that of group_metadata() does not say so
    lost = bool(coordinator.rejoining and generation.is_lost() and consumer.assignment())
    if lost:
        coordinator.rejoining = False
    return lost


def topic_id_of(consumer: KafkaConsumer, topic: str) -> object:
    """Kafka's id of a topic as the consumer's metadata has it; None where it is not known."""
    return consumer._cluster.topic_id(topic)  # noqa: SLF001 - there is no public call for it
