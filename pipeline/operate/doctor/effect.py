"""Findings about one group: what its newest plan did to its members, and a probation after one that hurt."""

from collections.abc import Iterator

from pipeline.operate.doctor.evidence import GroupEvidence, Row
from pipeline.operate.doctor.finding import Finding
from pipeline.operate.output import plain
from pipeline.planning.state import from_json


def judged(group: GroupEvidence, decision: Row) -> Iterator[Finding]:
    """The effect of the newest plan, once it is judged, and the probation that the group is on."""
    figures = group.figures("planned", "plan_state", decision["updated_at"])
    plan, effect, why = decision["plan"], decision["plan_effect"], plain(decision["plan_effect_why"])
    if plan is not None and effect == "hurt":
        yield figures.finding(
            "note",
            f"plan epoch {plan['epoch']} hurt: {why}",
            "nothing: it is taken back once, as pins, pause and approval allow",
        )
    elif plan is not None and effect == "helped":
        yield figures.finding("ok", f"plan epoch {plan['epoch']} helped: {why}")
    if _is_on_probation(group, decision):
        hurts = from_json(decision["state"]).hurts
        plans = "a plan" if hurts <= 1 else f"{hurts} plans"
        yield figures.about("plans").finding(
            "note",
            f"the group gets no plan before {plain(decision['probation_until'])}: it is on probation, since {plans} "
            "hurt it",
            f"`lagwise recommendations --group {plain(group.group_id)} --detail` shows the plan and its effect; "
            f"`lagwise resume {plain(group.group_id)}` ends the probation",
        )


def _is_on_probation(group: GroupEvidence, decision: Row) -> bool:
    until = decision["probation_until"]
    return until is not None and bool(until > group.stream.now)
