"""JSON cases in, JSON answers out: one form for the command, tests and what-if runs.

    {"topics":{"t":2},"lags":{"t":[30,10]},
     "members":{"m1":{"topics":["t"],"owned":{"t":[0,1]},"generation":5},"m2":{"topics":["t"]}}}
    → {"assignment":{"m1":{"t":[0]},"m2":{"t":[1]}},"unassigned":{},
       "moves":[{"topic":"t","partition":1,"from":"m1","to":"m2","lag":10}],
       "figures":{...},"reason":null}

Units: capacity and rates in records/s, lags in records, times in seconds. A null lag is unknown; strategies
and times take it as 0, and `reason` says for how many partitions.
"""

import json
from collections.abc import Callable, Iterable, Mapping

from assignor.cases.answer import answer
from assignor.cases.input import CASE_KEYS, read_case, read_document
from assignor.errors import AssignorError, InvalidCaseError
from assignor.evaluation.validity import check
from assignor.strategies.registry import Strategy, strategy

_ANSWER_KEYS = frozenset({"assignment", "unassigned", "moves", "figures", "reason", "error"})


def run_lines(
    lines: Iterable[str], write: Callable[[str], object], *, strategy_name: str, clock: Callable[[], float]
) -> int:
    """Answer one case per line, in order, and return the exit status: 1 if any case failed, otherwise 0.

    A bad case gives `{"error": "..."}` on its line and does not stop the rest. Blank lines are skipped.

    Args:
        lines: One JSON case each.
        write: Called once per answer with one line of ASCII, newline included; it flushes.
        strategy_name: See `registry`.
        clock: Seconds that only ever rise, for `figures.seconds`.

    Raises:
        UnknownStrategyError: Before any line is read.
    """
    chosen = strategy(strategy_name)
    status = 0
    for line in lines:
        if line.strip():
            result = run_line(line, chosen, clock=clock)
            status |= "error" in result
            write(json.dumps(result, separators=(",", ":"), allow_nan=False) + "\n")
    return int(status)


def run_line(line: str, chosen: Strategy, *, clock: Callable[[], float]) -> dict[str, object]:
    """The answer to the case in one line, or its error; keys that are not those of a case are echoed."""
    try:
        document = read_document(line)
    except InvalidCaseError as error:
        return {"error": str(error)}
    echo = {key: value for key, value in document.items() if key not in CASE_KEYS | _ANSWER_KEYS}
    try:
        return echo | run_case(document, chosen, clock=clock)
    except AssignorError as error:
        return echo | {"error": str(error)}


def run_case(
    document: Mapping[str, object], chosen: Strategy, *, clock: Callable[[], float]
) -> dict[str, object]:
    """The answer to one case that was parsed already; its keys are in a fixed order.

    Raises:
        InvalidCaseError: See `input.read_case`.
        InvalidOptionError: The strategy does not take the options.
        UnequalSubscriptionsError: The strategy does not take the group.
    """
    case = read_case(document)
    started = clock()
    assignment = chosen.assign(case.group, case.options)
    seconds = clock() - started
    verdict = check(case.group, assignment)
    return answer(case, chosen, assignment, verdict, seconds=seconds)
