"""The member by which lagwise makes a broker assign a KIP-848 group: it subscribes to nothing, and leaves again.

It is no consumer of the group, so no table, plan or history shows it.
"""

from typing import Final

CLIENT_ID: Final = "lagwise-poke"
"""By which brokers, people and this module tell it."""
# No topic's name has a colon, so neither RE2/J in a broker nor a client finds a match. A topic that is named would have
# to be one that this user may describe, and clients ask for it.
NOTHING: Final = "^:lagwise-poke:$"
"""The regular expression that it subscribes to."""
# librdkafka joins the expressions of a subscription: to the broker each is a group of the whole.
_AS_SENT: Final = frozenset({NOTHING, f"({NOTHING})"})


def is_poke(client_id: str | None, *, reads_names: bool, topic_regex: str | None) -> bool:
    """Whether this is lagwise's own member: a consumer of that client id which reads something is not.

    Args:
        client_id: As the member gave it.
        reads_names: It subscribes to topics by name.
        topic_regex: The expression that it subscribes to, too.
    """
    return client_id == CLIENT_ID and not reads_names and topic_regex in _AS_SENT
