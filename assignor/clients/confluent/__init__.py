"""A consumer of confluent-kafka whose group takes over the plans of the control topic.

Imports `clients.follower` and confluent-kafka. Start with `follower`; `topics` reads plans and acknowledgements,
`config` says what the consumer must be set to.
"""

from assignor.clients.confluent.config import FollowerConfigError
from assignor.clients.confluent.follower import Follower, NotOwnedError, TransactionsUnsupportedError

__all__ = ["Follower", "FollowerConfigError", "NotOwnedError", "TransactionsUnsupportedError"]
