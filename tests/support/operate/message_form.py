"""The form that a line for operators must have, whichever part of lagwise writes it."""

import re

from pipeline.config.names import known_keys
from pipeline.operate.cli.app import COMMANDS

_MOST_CHARACTERS = 240
# Words of our own, and turns that are no English: each has a plain one in the field's literature.
_PRIVATE = re.compile(
    r"\b(anew|says so|numbered through|(?:is|are) out\b|found wanted|takes its place|giver|taker|talk|"
    r"no more\b|not known|nobody says|pid|rooms?|shelf|shelves|lately|what it says|made again)",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"`lagwise ([a-z]+)")
_KEY = re.compile(
    r"\b(?:cluster|kafka|source|trigger|start|history|plan|control|tables)\.[a-z_]+(?:\.[a-z_]+)*"
)


def faults(message: str) -> list[str]:
    """What is wrong with the form of `message`: one line, no period at its end, no private words, real names.

    Commands in backticks must exist, and so must keys of the configuration, so that nobody looks for them in vain.
    """
    found = []
    if not message or message != " ".join(message.split()):
        found.append("is empty, has several lines or stray spaces")
    if message.endswith((".", "!", ";", ":", ",")):
        found.append(f"ends in {message[-1]!r}")
    if len(message) > _MOST_CHARACTERS:
        found.append(f"has {len(message)} characters")
    found += [f"says {words!r}" for words in _PRIVATE.findall(message)]
    found += [f"names the command {name!r}" for name in _COMMAND.findall(message) if name not in COMMANDS]
    keys = set(known_keys())
    found += [f"names the key {key!r}" for key in _KEY.findall(message) if key not in keys]
    return found
