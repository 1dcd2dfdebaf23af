"""A case explained: the answer to it, what each member has, what each move buys, and the whole in a sentence."""

import math
from collections.abc import Mapping

from assignor.cases.answer import finite, named_moves, reason
from assignor.cases.input import CASE_KEYS, Case, read_case
from assignor.evaluation.drain.report import AssignmentReport, MoveReport, report
from assignor.evaluation.drain.words import cause_in_words, time_in_words
from assignor.evaluation.validity import check
from assignor.strategies.registry import Strategy


def explain(document: Mapping[str, object], chosen: Strategy) -> dict[str, object]:
    """The explanation, ready for JSON; a time is null when it is never or, without capacities, not known.

    Keys that are not those of a case are echoed, as in answers.

    Raises:
        AssignorError: The case is not one, or the strategy does not take it (see `run.run_case`).
    """
    case = read_case(document)
    assignment = chosen.assign(case.group, case.options)
    check(case.group, assignment)
    figures = report(case.group, assignment)
    bound, before_s, after_s = figures.bound, figures.before_s, figures.after_s
    echo = {key: value for key, value in document.items() if key not in CASE_KEYS}
    return echo | {
        "strategy": chosen.name,
        "summary": _summary(case, figures),
        "reason": reason(case, chosen, assignment, bound=bound, before_s=before_s, after_s=after_s),
        "drain_s_before": finite(before_s),
        "drain_s_after": finite(after_s),
        "drain_s_bound": finite(None if bound is None else bound.time_s),
        "drain_ratio": None if figures.ratio is None else round(figures.ratio, 6),
        "members": _members(case, figures),
        "moves": [
            move | _bought(bought)
            for move, bought in zip(named_moves(case, assignment.member), figures.moves, strict=True)
        ],
    }


def _members(case: Case, figures: AssignmentReport) -> list[dict[str, object]]:
    group = case.group
    return [
        {
            "member": member_id,
            "capacity": None if group.capacity is None else float(group.capacity[m]),
            "partitions_before": int(figures.partitions_before[m]),
            "partitions_after": int(figures.partitions_after[m]),
            "lag_before": int(figures.lag_before[m]),
            "lag_after": int(figures.lag_after[m]),
            "drain_s_before": finite(None if figures.member_s_before is None else figures.member_s_before[m]),
            "drain_s_after": finite(None if figures.member_s_after is None else figures.member_s_after[m]),
        }
        for m, member_id in enumerate(group.member_ids)
    ]


def _bought(move: MoveReport) -> dict[str, object]:
    """What would be without the move."""
    return {
        "drain_s_without": finite(move.without_s),
        "saves_record_s": None if move.saves_record_s is None else round(move.saves_record_s, 3),
    }


def _summary(case: Case, figures: AssignmentReport) -> str:
    """The outcome in one or two sentences."""
    n = len(figures.moves)
    moves = "Nothing moves" if n == 0 else f"{n} move{'s' if n > 1 else ''}"
    before_s, after_s, bound = figures.before_s, figures.after_s, figures.bound
    if before_s is None or after_s is None or bound is None:
        return f"{moves}. How soon the group is drained is not known: no member has a capacity."
    was = f" instead of {time_in_words(before_s)}" if n > 0 else ""
    drained = "is never drained" if math.isinf(after_s) else f"is drained in {time_in_words(after_s)}{was}"
    if math.isinf(bound.time_s):
        return f"{moves}: the group {drained}, nor would it be by any other assignment."
    if bound.time_s == 0:
        return f"{moves}: the group {drained}."
    best = (
        f"No assignment takes less than {time_in_words(bound.time_s)}: {cause_in_words(case.group, bound)}."
    )
    return f"{moves}: the group {drained}. {best}"
