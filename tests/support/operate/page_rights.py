"""The rights of deploy/docs/deploying-security.md, by its own lines."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import AclOperation, ResourceType

from tests.support.brokers.secured import Right

_PAGE = Path(__file__).parents[3] / "deploy/docs/deploying-security.md"
_KINDS = {"--topic": ResourceType.TOPIC, "--group": ResourceType.GROUP}


def rights_of(user: str, names: Mapping[str, str]) -> list[Right]:
    """What the lines for Kafka's command allow the user.

    Args:
        user: As the page has it.
        names: The topics and groups that stand for those of the page, by the name there; all of them.
    """
    lines = re.findall(
        rf"^    kafka-acls\.sh .* --allow-principal User:{user} (.+)$", _PAGE.read_text("utf-8"), re.MULTILINE
    )
    rights: list[Right] = []
    for line in lines:
        words = shlex.split(line)
        pairs = list(zip(words[::2], words[1::2], strict=True))
        operations = [AclOperation[value.upper()] for option, value in pairs if option == "--operation"]
        places = [(_KINDS[option], names[value]) for option, value in pairs if option in _KINDS]
        rights += [(operation, kind, name) for operation in operations for kind, name in places]
    assert rights, f"the page has no line for {user}"
    return rights
