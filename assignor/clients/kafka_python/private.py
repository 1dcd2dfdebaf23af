"""Access to private parts of kafka-python.

They rejoin the group, detect a join that never finishes and a loss within a join, and take the rebalance protocol from
the assignor that the group selects (KIP-726).

This module relies on private parts of kafka-python 3.0.12, so the version is pinned, and a test fails when a release
changes them.
"""

from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.errors import RebalanceInProgressError


def request_rejoin(consumer: KafkaConsumer) -> None:
    """Make the member join its group again, at its next poll."""
    consumer._coordinator.request_rejoin()


def is_stuck(consumer: KafkaConsumer) -> bool:
    """Return whether a join has begun that no poll will finish; call it between polls, in the polling thread.

    A leader that joins because metadata changed no longer needs a rejoin once it has assigned. If its poll ends just
    then, no later poll looks at the join again: the member reads nothing and is evicted in the end. A requested rejoin
    makes the next poll finish it.
    """
    coordinator = consumer._coordinator
    return bool(coordinator.rebalance_in_progress() and not coordinator.need_rejoin())


def lost_within_join(consumer: KafkaConsumer) -> bool:
    """Return whether the consumer lost its membership during a join and still has partitions; it then joins again.

    The client checks for a loss only where a join begins, and tells its user there. If the broker refuses a member in
    the middle of a join, as it does with a process that was stopped for too long, the client retries with the
    partitions it had. If it then gets others, it tells its user of a revocation, and the commit made there counts. The
    Java client checks again (`AbstractCoordinator.resetStateAndRejoin`), and so does this one when its join begins
    again.
    """
    coordinator = consumer._coordinator
    generation = coordinator._generation  # group_metadata() does not tell whether it is lost
    lost = bool(coordinator.rejoining and generation.is_lost() and consumer.assignment())
    if lost:
        coordinator.rejoining = False
    return lost


def is_cooperative(consumer: KafkaConsumer) -> bool:
    """Return whether the consumer keeps its partitions while it joins."""
    coordinator = consumer._coordinator
    return bool(coordinator._rebalance_protocol == RebalanceProtocol.COOPERATIVE)


def keep_in_next_join(consumer: KafkaConsumer) -> None:
    """Make the consumer keep its partitions from the next join on, because a cooperative assignor assigned them.

    During a join it is too late: an eager member has already been told of the revocation, and the client has to tell
    it of its whole assignment.
    """
    consumer._coordinator._rebalance_protocol = RebalanceProtocol.COOPERATIVE


def follow_selection(consumer: KafkaConsumer) -> None:
    """Make the consumer eager when its group selects an eager assignor. A second call does nothing.

    The client fixes its protocol when the consumer is created, and does not look at the selection afterwards.
    """
    coordinator = consumer._coordinator
    if not isinstance(coordinator._process_join_group_response, _JoinAnswered):
        coordinator._process_join_group_response = _JoinAnswered(coordinator)


class _JoinAnswered:
    """Replaces the client's handling of the answer to JoinGroup.

    If the answer names an eager assignor, its leader also assigns the partitions that this member has kept, so the
    member has lost them. It forgets its generation, so that the client refuses commits, and begins the join again at
    once, where it tells its user of the loss. It never becomes a member of the generation in which others own its
    partitions.
    """

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._process = coordinator._process_join_group_response

    def __call__(self, response: Any, send_time: float) -> Any:
        answer = self._process(response, send_time)
        coordinator = self._coordinator
        selected = coordinator._lookup_assignor(answer.protocol_name)
        if selected is None or RebalanceProtocol.COOPERATIVE in selected.supported_protocols():
            return answer
        kept = coordinator._rebalance_protocol == RebalanceProtocol.COOPERATIVE
        coordinator._rebalance_protocol = RebalanceProtocol.EAGER
        if kept and coordinator._subscription.assigned_partitions():
            coordinator.reset_generation(answer.member_id)
            coordinator.rejoining = False
            raise RebalanceInProgressError(
                f"{selected.name} is eager and assigns partitions that this member has kept"
            )
        return answer


def topic_id_of(consumer: KafkaConsumer, topic: str) -> object:
    """Kafka's id of a topic, from the consumer's metadata; None if it is not known."""
    return consumer._cluster.topic_id(topic)
