"""Findings about one group: have its members taken the newest published plan, and if not, why not."""

from collections.abc import Iterator
from dataclasses import replace

from assignor.protocol.migration import POLICY, is_why
from pipeline import clock
from pipeline.operate.doctor.evidence import GroupEvidence
from pipeline.operate.doctor.facts import facts_of, names_of, plan_of
from pipeline.operate.doctor.finding import Figures, Finding, named
from pipeline.operate.output import plain, span_text
from pipeline.planning.broker_groups import has_taken
from pipeline.planning.facts import AckFacts, GroupFacts
from pipeline.planning.life.answers import accepting, answered, follows_within_generation
from pipeline.planning.state import PlanState

_FOLLOW = (
    "make all its members followers of the control topic, or pin the partitions of those that cannot follow"
)
_BROKER = (
    "check that every broker runs lagwise's assignor, and that the group's consumers ask for it "
    "(group.remote.assignor=lagwise)"
)
_STATIC = "static"
"""Reason with which a follower with a `group.instance.id` refuses every plan."""


def followed(group: GroupEvidence) -> Iterator[Finding]:
    """Yield findings on the newest plan; none before the first decision, which `planned` explains."""
    if group.decision is None:
        return
    figures = group.figures("followed", "plan_state", group.decision["updated_at"])
    plan = plan_of(group)
    if plan is None and group.decision["plan"] is not None:
        yield figures.finding("unknown", "another version of lagwise recorded the outcome of the plan")
    elif plan is None:
        yield figures.finding(
            "note", "no plan of the group has been published yet, so there is none to follow"
        )
    else:
        figures = figures.about(f"plan epoch {plan.epoch}")
        yield _outcome(plan, figures, _BROKER if facts_of(group).is_kip848 else _FOLLOW)
        yield from _answers(group, plan, figures)


def _outcome(plan: PlanState, figures: Figures, todo: str) -> Finding:
    made = f"{plan.done} of {plan.moves} moves are made"
    why = f": {plain(plan.why)}" if plan.why else ""
    name = f"plan epoch {plan.epoch}"
    if plan.status in {"open", "applied"}:
        return figures.finding("ok", f"{name} is {plan.status}; {made}")
    if plan.status == "expired":
        return figures.finding("problem", f"nothing had moved when {name} expired{why}", todo)
    if plan.status == "refused":
        return figures.finding("problem", f"{name} is refused{why}", "see what its members say")
    return figures.finding("note", f"{name} is {plan.status}{why}")


def _answers(group: GroupEvidence, plan: PlanState, figures: Figures) -> Iterator[Finding]:
    """Answers of members to the newest publication of the plan."""
    facts = facts_of(group)
    if facts.is_kip848:
        yield from _taken(plan, facts, figures)
        return
    names = names_of(facts)
    figures = replace(figures, source="acks", as_of=group.stream.as_of)
    for ack in facts.acks:
        if ack.epoch == plan.epoch and ack.kind in {"refused", "void"}:
            yield _refusal(ack, plain(names.get(ack.member_id, f"member {ack.member_id}")), figures)
    if plan.status != "open":
        return
    accepted = accepting(plan, facts)
    if accepted:
        yield figures.finding("ok", f"{len(accepted)} of {len(facts.members)} members have accepted it")
    yield from _silent(group, plan, facts, figures)


def _taken(plan: PlanState, facts: GroupFacts, figures: Figures) -> Iterator[Finding]:
    """Whether the broker has taken the open plan of a group that it assigns."""
    figures = replace(figures, source="consumer_groups")
    if plan.status != "open":
        return
    if has_taken(facts, plan):
        yield figures.finding("ok", "the broker has made the plan its target assignment")
        return
    yield figures.finding(
        "note",
        "the broker has not made the plan its target assignment: it assigns a group when members or topics change",
        _BROKER,
    )


def _silent(group: GroupEvidence, plan: PlanState, facts: GroupFacts, figures: Figures) -> Iterator[Finding]:
    """Members that might have answered by now."""
    if group.stream.as_of is None:
        return
    age_s = (group.stream.as_of - clock.at(plan.sent_at_ms)).total_seconds()
    if age_s <= group.stream.config.plan.for_group(group.group_id).guards.settle_s:
        return
    if not follows_within_generation(facts):
        yield figures.finding(
            "note",
            f"with assignor {plain(facts.assignor)} members take a plan at a rebalance, if at all, without an answer",
            "to make them follow, see deploy/docs/following-assignors.md",
        )
        return
    said = answered(plan, facts)
    quiet = [plain(name) for member_id, name in names_of(facts).items() if member_id not in said]
    if quiet:
        all_of_them = "" if said else "all "
        yield figures.finding(
            "note" if said else "problem",
            f"{all_of_them}{len(quiet)} member(s) have not answered the plan, published {span_text(age_s)} before "
            f"the newest batch: {named(quiet)}",
            _FOLLOW,
        )


def _refusal(ack: AckFacts, name: str, figures: Figures) -> Finding:
    what = "refuses the plan" if ack.kind == "refused" else "has ended a hand-over"
    if ack.why == _STATIC:
        todo = "static members cannot follow: pin its partitions, or remove group.instance.id"
    elif is_why(ack.why):
        todo = f"set {POLICY}=disabled on every broker, and allow DescribeConfigs on the cluster"
    else:
        todo = "nothing now: lagwise makes the next plan for the group as it is then"
    return figures.about(name).finding("problem", f"{name} {what}: {plain(ack.why)}", todo)
