"""SQL as text: the end of a statement, and statements that are refused before Spark sees them."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pipeline.errors import PipelineError

READS: Final = "SELECT, WITH, FROM, VALUES, TABLE, SHOW, DESCRIBE or EXPLAIN"
"""First words of reading statements, for messages."""

# As Spark's lexer: a quote or comment that is not closed goes on to the end of the text.
_TOKEN = re.compile(
    r"""
    (?P<comment> --(?:\\\n|[^\n])* )
    | (?P<block> /\* )
    | (?P<end> ; )
    | (?<!\w)[rR](?: '[^']*(?:'|\Z) | "[^"]*(?:"|\Z) )
    | '(?:[^'\\]|\\(?:.|\Z))*(?:'|\Z)
    | "(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)
    | `[^`]*(?:`|\Z)
    | [^-/;'"`rR]+
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
# The begin of a hint opens nothing within a comment.
_BLOCK = re.compile(r"/\*(?!\+)|\*/")
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
    for kind, start, end in _tokens(text):
        if kind == "end":
            found.append(text[begin:start].strip())
            begin = end
    return [one for one in found if not is_empty(one)], text[begin:]


def is_empty(text: str) -> bool:
    """Return whether the text has only white space and comments; one that is open is no empty text."""
    return not without_comments(text).strip()


def without_comments(text: str) -> str:
    """The text with a space for each comment, but for one that is not closed."""
    return "".join(" " if kind == "comment" else text[start:end] for kind, start, end in _tokens(text))


def _tokens(text: str) -> Iterator[tuple[str | None, int, int]]:
    """Kind (`comment`, `end` or none that matters), begin and end of each token."""
    start = 0
    while token := _TOKEN.match(text, start):
        kind, end = token.lastgroup, token.end()
        if kind == "block":
            closed = _end_of_block(text, end)
            kind, end = ("comment", closed) if closed is not None else (None, len(text))
        yield kind, start, end
        start = end


def _end_of_block(text: str, begin: int) -> int | None:
    """Where a comment ends that has begun; Spark's contain others. None if it is not closed."""
    depth = 1
    for mark in _BLOCK.finditer(text, begin):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


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
