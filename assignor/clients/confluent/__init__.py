"""A consumer of confluent-kafka whose group takes over the plans of the control topic.

Imports `clients.follower` and confluent-kafka. Start with `follower`, the user's interface; `steering` drives the state
machine, `reading` tracks partitions and positions, `topics` writes acknowledgements, `reader` reads them and plans, and
`config` holds the settings that the consumer must have.
"""

# ruff: noqa: E402 - refuse an unsupported version of the client with a reason, before one of its imports fails
from assignor.clients.client_version import require

require(
    "confluent-kafka",
    least=(2, 16),
    below=(),
    parts=(
        "confluent_kafka:Consumer.consumer_group_metadata",
        "confluent_kafka:Consumer.memberid",
        "confluent_kafka:Consumer.set_sasl_credentials",
    ),
    extra="confluent",
)

from assignor.clients.confluent.config import FollowerConfigError
from assignor.clients.confluent.errors import NotOwnedError, TransactionsUnsupportedError
from assignor.clients.confluent.follower import Follower

__all__ = ["Follower", "FollowerConfigError", "NotOwnedError", "TransactionsUnsupportedError"]
