"""SQL as text: the end of a statement, and statements that are refused before Spark sees them."""

import re
from collections.abc import Iterable
from typing import Final

from pipeline.errors import PipelineError

READS: Final = "SELECT, WITH, FROM, VALUES, TABLE, SHOW, DESCRIBE or EXPLAIN"
"""First words of reading statements, for messages."""

# A quote or comment that is not closed goes on to the end of the text.
_TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<end> ; )
    | '(?:[^'\\]|\\(?:.|\Z))*(?:'|\Z)
    | "(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)
    | `[^`]*(?:`|\Z)
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
# EXPLAIN runs nothing, and would tell no more than that about a statement that writes.
_FIRST_WORD = re.compile(
    r"[\s(]*(?:EXPLAIN\s+(?:(?:EXTENDED|CODEGEN|COST|FORMATTED|LOGICAL)\s+)?)?(\w+)", re.IGNORECASE
)
_WRITES: Final = frozenset(
    {
        *("INSERT", "DELETE", "UPDATE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "REPLACE", "COPY"),
        *("VACUUM", "OPTIMIZE", "RESTORE", "REORG", "CONVERT", "CLONE", "LOAD", "MSCK", "REPAIR", "ANALYZE"),
        *("REFRESH", "CACHE", "UNCACHE", "CLEAR", "COMMENT", "GENERATE", "UPGRADE", "ADD", "SET", "RESET"),
        *("USE", "GRANT", "REVOKE", "LOCK", "UNLOCK", "BEGIN", "DECLARE", "EXECUTE", "CALL", "EXPORT"),
        "IMPORT",
    }
)


class RefusedError(PipelineError):
    """The statement does more than read; nothing of it has run."""


def refused(what: str) -> RefusedError:
    """The error about a word, or a kind of plan, that does more than read."""
    return RefusedError(
        f"{what} is refused, and nothing was run: `lagwise sql` only reads, by statements that begin with {READS}"
    )


def cut(text: str) -> tuple[list[str], str]:
    """The statements that end with a semicolon, without it, and what follows the last one.

    A semicolon in quotes or in a comment ends nothing. Empty statements are left out.
    """
    found, begin = [], 0
    for token in _TOKEN.finditer(text):
        if token["end"]:
            found.append(text[begin : token.start()].strip())
            begin = token.end()
    return [one for one in found if not is_empty(one)], text[begin:]


def is_empty(text: str) -> bool:
    """Return whether the text has only white space and comments."""
    return not without_comments(text).strip()


def without_comments(text: str) -> str:
    """The text with a space for each comment."""
    return "".join(" " if token["comment"] else token[0] for token in _TOKEN.finditer(text))


def refuse_writes(statement: str) -> None:
    """Return if the first word may begin a statement that reads; the plan decides in the end (`plans`).

    Raises:
        RefusedError: It begins one that writes, or that changes the session.
    """
    word = _FIRST_WORD.match(without_comments(statement))
    if word is not None and word[1].upper() in _WRITES:
        raise refused(word[1].upper())


def names_in(statement: str, names: Iterable[str]) -> list[str]:
    """Return the names that occur in the statement, in any case."""
    words = set(re.findall(r"\w+", statement.lower()))
    return [name for name in names if name in words]
