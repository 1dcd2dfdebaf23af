"""Findings about one group: does lagwise make plans for it, and publish them, and if not, why not."""

from collections.abc import Iterator
from dataclasses import replace

from pipeline import shell
from pipeline.operate.doctor.evidence import GroupEvidence, Row
from pipeline.operate.doctor.facts import facts_of, plan_of
from pipeline.operate.doctor.finding import Figures, Finding, Level
from pipeline.operate.doctor.stream import held
from pipeline.operate.output import plain, span_text
from pipeline.planning import reasons
from pipeline.planning.broker_groups import is_on_its_way
from pipeline.planning.eligibility import why_not_plannable
from pipeline.planning.rows.causes import cause_of, guard_of
from pipeline.planning.state import from_json
from pipeline.tables.stamp import NO_PLANS_BY_ANSWERS

_INTERVALS_UNTIL_OLD = 3
_TODO_OF_GUARD = {
    "settle": "wait until the group has settled, or lower settle_s",
    "lag": "nothing while nobody is late; else lower min_lag_s, or min_lag if it is set",
    "moves": "use lag-sticky, which keeps to the limit, or raise moves_share",
    "improvement": "nothing if the gain is too small for you, too; else lower min_improvement",
    "cooldown": "wait, or lower cooldown_s",
    "confirmations": "wait for the next evaluation, or lower confirmations",
    "headroom": "nothing: the lag drains by itself, and the plan would leave a member less headroom",
    "price": "wait: lag that lasts gets its plan; find out what a member has to load for a partition that is new to it",
    "effect": "wait: a few commits of its members show whether the last plan hurts",
}
"""By name of the guard, whose settings are below plan.guards."""
_TO_BE_ACTED_ON = ("the subscription of member ",)
_NOT_JUDGED = ("provisional: ", reasons.GENERATION_UNKNOWN)


def planned(group: GroupEvidence) -> Iterator[Finding]:
    """Yield findings on whether the group gets plans; none for an unlisted group, which `listed` explains."""
    if not group.is_listed:
        return
    yield from held(group.stream, _figures(group))
    if group.stream.stamp is not None and group.stream.stamp.held == NO_PLANS_BY_ANSWERS:
        return
    yield from planned_itself(group)


def planned_itself(group: GroupEvidence) -> Iterator[Finding]:
    """Yield the same findings without causes that keep all groups from plans."""
    figures = _figures(group)
    facts = facts_of(group)
    on_its_way = is_on_its_way(facts, plan_of(group))
    now = why_not_plannable(facts, is_excluded=_is_excluded(group), on_its_way=on_its_way)
    if group.decision is None:
        yield from _undecided(figures, now)
    else:
        yield from _decided(group, group.decision, now)
        yield from _judged(group, group.decision)
        if now is not None and not _is_same(now, group.decision["reason"]):
            cause, todo = _halves(now)
            yield figures.finding(_level(now), f"the next decision will be to abstain: {cause}", todo)
    yield from _pinned(group)


def _figures(group: GroupEvidence) -> Figures:
    return group.figures("planned", "consumer_groups", group.stream.as_of)


def _undecided(figures: Figures, now: str | None) -> Iterator[Finding]:
    if now is not None:
        cause, todo = _halves(now)
        yield figures.finding(_level(now), f"the group gets no plan: {cause}", todo)
        return
    yield replace(figures, source="plan_state").finding(
        "unknown",
        "nothing has been decided about the group yet",
        "wait for the next evaluation (plan.interval_s)",
    )


def _decided(group: GroupEvidence, decision: Row, now: str | None) -> Iterator[Finding]:
    figures = group.figures("planned", "plan_state", decision["updated_at"])
    reason = decision["reason"] or ""
    if decision["decision"] == "publish":
        yield figures.finding("ok", _published(decision))
    elif decision["decision"] == "abstain":
        cause, todo = _halves(reason)
        yield figures.finding(
            _level(reason) if _is_same(reason, now) else "problem", f"abstained: {plain(cause)}", todo
        )
    elif decision["decision"] in {"dry_run", "advice"}:
        cause, todo = _halves(reason)
        yield figures.finding(
            "note", f"a plan with {len(decision['moves'])} move(s) is made; {plain(cause)}", todo
        )
    elif decision["decision"] == "awaiting_approval":
        yield _awaiting(group, decision, figures)
    elif decision["decision"] == "unchanged":
        yield _unchanged(figures, reason)
    else:
        yield figures.finding(
            "unknown", f"a later version of lagwise has decided: {plain(decision['decision'])}"
        )
    yield from _late(group, decision, figures)


def _awaiting(group: GroupEvidence, decision: Row, figures: Figures) -> Finding:
    since, until = plain(decision["awaiting_since"]), plain(decision["valid_until"])
    refused, _ = _halves(decision["reason"] or "")
    why = f"; {plain(refused)}" if refused.startswith("approval refused: ") else ""
    return figures.finding(
        "note",
        f"a plan with {len(decision['moves'])} move(s) waits for approval since {since}{why}",
        f"publish it with {shell.command('approve', group.group_id)} until {until}; after that it is made again",
    )


def _published(decision: Row) -> str:
    if decision["record"] is None:
        return f"the published plan was taken back: {plain(decision['reason'])}"
    return f"plan epoch {decision['epoch']} with {len(decision['moves'])} move(s) is published"


def _unchanged(figures: Figures, reason: str) -> Finding:
    cause, more = _halves(reason)
    guard = guard_of(reason)
    if guard is None:
        return figures.finding("ok", f"no new plan: {plain(reason)}")
    todo = _TODO_OF_GUARD.get(guard, more)
    return figures.about(f"plan.guards.{guard}").finding("note", f"a better plan is {plain(cause)}", todo)


def _late(group: GroupEvidence, decision: Row, figures: Figures) -> Iterator[Finding]:
    """A finding if decisions have ceased while batches go on."""
    stream = group.stream
    if not stream.is_configured or stream.as_of is None:
        return
    late_s = (stream.as_of - decision["updated_at"]).total_seconds()
    if late_s > _INTERVALS_UNTIL_OLD * stream.config.plan.interval_s:
        yield figures.finding(
            "problem",
            f"the decision is {span_text(late_s)} older than the newest batch, and one is due every "
            f"{stream.config.plan.interval_s} s (plan.interval_s)",
            "see the stream's log for what keeps it from planning",
        )


def _pinned(group: GroupEvidence) -> Iterator[Finding]:
    orders = group.orders
    if orders is None or not orders["pinned"]:
        return
    topics = ", ".join(f"{plain(topic)} {plain(ranges)}" for topic, ranges in orders["pinned"])
    yield group.figures("planned", "orders", orders["ordered_at"]).finding(
        "note",
        f"plans leave pinned partitions where they are: {topics} (by {plain(orders['ordered_by'])})",
        "`lagwise unpin` lets them move again",
    )


def _is_excluded(group: GroupEvidence) -> bool:
    """Whether a known configuration excludes the group."""
    return group.stream.is_configured and group.stream.config.plan.for_group(group.group_id).exclude


def _is_same(reason: str | None, other: str | None) -> bool:
    """Whether the two name one cause, whatever its figures."""
    return cause_of(reason) == cause_of(other)


def _level(reason: str) -> Level:
    """Level of a reason that keeps a group from plans: most reasons are settings and kinds of groups."""
    if reason.startswith(_TO_BE_ACTED_ON):
        return "problem"
    return "unknown" if reason.startswith(_NOT_JUDGED) else "note"


def _halves(reason: str) -> tuple[str, str | None]:
    """The cause in a reason, and what to do."""
    cause, _, todo = reason.partition("; ")
    return cause, plain(todo) if todo else None


def _judged(group: GroupEvidence, decision: Row) -> Iterator[Finding]:
    """The effect of the newest plan, once it is judged, and the probation that the group is on."""
    figures = group.figures("planned", "plan_state", decision["updated_at"])
    plan, effect, why = decision["plan"], decision["plan_effect"], plain(decision["plan_effect_why"])
    if plan is not None and effect == "hurt":
        yield figures.finding(
            "note",
            f"plan epoch {plan['epoch']} hurt: {why}",
            "nothing: it is taken back once, as pins, pause and approval allow, unless it returned partitions to "
            "where they were before plans and moves are expensive",
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
            f"`lagwise recommendations --group {shell.quoted(group.group_id)} --detail` shows the plan and its effect; "
            f"{shell.command('resume', group.group_id)} ends the probation",
        )


def _is_on_probation(group: GroupEvidence, decision: Row) -> bool:
    until = decision["probation_until"]
    return until is not None and bool(until > group.stream.now)
