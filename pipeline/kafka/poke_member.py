"""The member with which lagwise pokes a KIP-848 group. It reads nothing and leaves at once.

It is not a consumer of the group, so no table, plan or history shows it.
"""

from collections.abc import Collection
from typing import Final

CLIENT_ID: Final = "lagwise-poke"
"""Identifies the member to brokers, to people, and to `is_poke`."""
# No topic name has a colon, so neither a broker (RE2/J) nor a client finds a match. A subscription by name would need
# the right to describe that topic, and clients would request its metadata.
NOTHING: Final = "^:lagwise-poke:$"
"""The regular expression that it subscribes to."""
# librdkafka joins the expressions of a subscription into one, each in parentheses.
_AS_SENT: Final = frozenset({NOTHING, f"({NOTHING})"})


def is_poke(client_id: str | None, *, reads_nothing: bool) -> bool:
    """Whether this is lagwise's own member; a consumer with the same client id that can read something is not.

    Args:
        client_id: Client id of the member.
        reads_nothing: In a record, `subscribes_to_nothing`. A coordinator's answer has no subscription, so there it
            means that the member has no partition.
    """
    return client_id == CLIENT_ID and reads_nothing


def subscribes_to_nothing(topic_names: Collection[str], topic_regex: str | None) -> bool:
    """Whether a subscription, with these names and this regular expression, is that of lagwise's own member."""
    return not topic_names and topic_regex in _AS_SENT
