"""Check by Spark's parser that a statement only reads."""

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from pipeline.operate.sql.statements import refused

_CATALYST = "org.apache.spark.sql.catalyst.plans.logical"
# Whatever is a command or a statement of its own, of Spark or of Delta, and scripts that a query may start.
_ACTIONS = (f"{_CATALYST}.Command", f"{_CATALYST}.ParsedStatement", f"{_CATALYST}.ScriptTransformation")
# They act, and Spark has no common class for them; by name, since versions of Spark name them differently.
_MORE_ACTIONS = re.compile(r"Insert|\w*Execute")
_ACTIONS_THAT_READ = re.compile(r"(Show|Describe|Explain)\w+")


def refuse_actions(spark: SparkSession, statement: str) -> None:
    """Return if the statement only reads. Does not run it.

    Raises:
        RefusedError: A part of it does more than read, such as the INSERT after a WITH.
        ParseException: It is not SQL.
    """
    session: Any = spark._jsparkSession  # noqa: SLF001 - pyspark has no way to parse without running
    jvm: Any = spark._jvm  # noqa: SLF001 - as above
    actions = [jvm.java.lang.Class.forName(name) for name in _ACTIONS]
    for node in _nodes(session.sessionState().sqlParser().parsePlan(statement)):
        kind = str(node.getClass().getSimpleName())
        acts = _MORE_ACTIONS.match(kind) or any(one.isInstance(node) for one in actions)
        if acts and not _ACTIONS_THAT_READ.match(kind):
            raise refused(_in_words(kind))


def _nodes(plan: Any) -> Iterator[Any]:
    """The plan and all plans in it. Those of WITH are inner plans, not children."""
    yield plan
    for below in (plan.children().iterator(), plan.innerChildren().iterator()):
        while below.hasNext():
            one = below.next()
            if hasattr(one, "innerChildren"):
                yield from _nodes(one)


def _in_words(kind: str) -> str:
    """`InsertIntoStatement` as INSERT INTO."""
    words = re.findall(r"[A-Z][a-z]+", kind.removesuffix("Statement").removesuffix("Command"))
    return " ".join(words).upper() or kind
