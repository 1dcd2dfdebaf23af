"""A consumer of confluent-kafka whose group takes over the plans of the control topic.

Imports `clients.follower` and confluent-kafka. Start with `follower`, the user's face; `steering` drives the state
machine, `reading` knows what is read and how far, `topics` writes acknowledgements and `reader` reads them and plans,
`config` says what the consumer must be set to.
"""

# ruff: noqa: E402 - another version of the client is refused before an import of it fails without saying why
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
