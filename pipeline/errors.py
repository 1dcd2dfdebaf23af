"""What can go wrong in the stream, by what the caller can do about it."""

import re

# It takes addresses without a query, too: to look for a query anew from each `http` of a text would be quadratic.
_ADDRESS = re.compile(r"(https?://[^\s'\"?]+)(\?[^\s'\"]+)?")


class PipelineError(Exception):
    """Root of all errors of `pipeline`."""


class ConfigError(PipelineError):
    """The configuration cannot be used; the message names the key and what to write instead."""


class MissingDependencyError(PipelineError):
    """Something the machine must have is missing; the message says how to install it."""


class BrokerUnavailableError(PipelineError):
    """The Kafka cluster did not answer in time. Trying again later is right."""


class TopicMissingError(BrokerUnavailableError):
    """A topic that was there when the job started is gone. Starting the stream again makes it."""


class AccessRefusedError(PipelineError):
    """The Kafka cluster does not know this user, or does not let it do what it must. Somebody has to change that."""


class OffsetsRefusedError(AccessRefusedError):
    """The Kafka cluster does not let this user read the offsets topic. Asking coordinators instead may be right."""


class AuthenticationError(AccessRefusedError):
    """The Kafka cluster does not know this user, or not with this password or certificate."""


class NotWaitingError(PipelineError):
    """The plan does not wait for approval; the message says what is the case instead."""


class QueryFailedError(PipelineError):
    """The query has failed several times in a row; the message names the cause. Starting the driver again is safe."""


class OrderError(PipelineError):
    """What was ordered is no order; the message says why."""


class SparkEndedError(PipelineError):
    """Spark has stopped, and this process cannot start it again. Starting the driver again is right."""


class FencedError(PipelineError):
    """Another driver owns these tables now. Trying again is wrong until it is stopped."""


class PublishError(PipelineError):
    """The control topic does not take a plan that is written down; the message says what to change."""


class TablesChangedError(PipelineError):
    """The tables are in another state than this driver has left them in; started again it goes on from them."""


class TablesSetBackError(TablesChangedError):
    """The tables are older than this driver's term: a copy, or new ones. It may take them over again."""


class StorageUnavailableError(PipelineError):
    """The tables cannot be written now: a full disk, a read-only mount. Trying again later is right."""


class StorageRefusedError(PipelineError):
    """The store refused a task of Spark's. Unless tasks could write before, somebody has to give them rights."""


class StoreError(PipelineError):
    """A table is not what the job expects; the message names table and path."""


class MissingTableError(StoreError):
    """There is no such table under the root."""


class DamagedLogError(StoreError):
    """The log of a table is damaged; the message says what to do."""


def without_queries(text: str) -> str:
    """The text with the query of each URL left out: Arrow quotes URLs of Azure with the signature that opens them."""
    return _ADDRESS.sub(lambda found: found[1] + ("?…" if found[2] else ""), text)
