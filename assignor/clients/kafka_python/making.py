"""Making clients of kafka-python from the settings of a consumer."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafka import KafkaConsumer
from kafka.errors import KafkaConfigurationError

ClientT = TypeVar("ClientT")


def check(settings: Iterable[str]) -> None:
    """Refuse names of settings that no consumer has.

    Raises:
        KafkaConfigurationError: There is one.
    """
    unknown = sorted(set(settings) - set(KafkaConsumer.DEFAULT_CONFIG))
    if unknown:
        raise KafkaConfigurationError(f"KafkaConsumer has no setting {', '.join(unknown)}")


def made(client: Callable[..., ClientT], *topics: str, **settings: Any) -> ClientT:
    """Create a client of kafka-python; on failure, end the thread that it started."""
    make = settings.pop("kafka_client", KafkaConsumer.DEFAULT_CONFIG["kafka_client"])
    begun: list[Any] = []

    def remembered(**config: Any) -> Any:
        begun.append(make(**config))
        return begun[-1]

    try:
        return client(*topics, kafka_client=remembered, **settings)
    except BaseException:
        for one in begun:
            one.close()
        raise
