"""Source: the ends of the logs that the stream reads, asked for by the process beside this one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient

from pipeline.config.secret_values import resolve
from pipeline.errors import BrokerUnavailableError
from pipeline.kafka import beside
from pipeline.kafka.positions import Answer, PartitionKey
from pipeline.kafka.sources.records.ends import EndsAsker


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsApart:
    """Asks, batch after batch."""

    properties: Mapping[str, str]
    """librdkafka properties; references to secrets are still unresolved."""
    topics: Sequence[str]
    timeout_s: float

    def __call__(self) -> dict[PartitionKey, Answer]:
        """As `EndsAsker`.

        Raises:
            BrokerUnavailableError: No broker answered at all, or the process has died.
            TopicMissingError: One of the topics is gone.
            AccessRefusedError: The cluster does not let this user in, or read one of the topics.
        """
        try:
            return beside.process.ask(3 * self.timeout_s, _ends, self)
        except beside.ProcessDiedError as error:
            raise BrokerUnavailableError(f"the ends of the topics are unknown: {error}") from error


# Of the process that answers: it remembers who did not.
_askers: dict[str, EndsAsker] = {}


def _ends(one: EndsApart) -> dict[PartitionKey, Answer]:
    name = repr(one)
    if name not in _askers:
        _askers[name] = EndsAsker(
            lambda: AdminClient({**resolve(one.properties)}), one.topics, timeout_s=one.timeout_s
        )
    return _askers[name]()
