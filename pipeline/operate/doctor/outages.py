"""Findings about one group: members that read nothing although there is something to read, as decisions saw them."""

from collections.abc import Iterator

from pipeline.operate.doctor.evidence import GroupEvidence
from pipeline.operate.doctor.facts import facts_of, names_of
from pipeline.operate.doctor.finding import Figures, Finding
from pipeline.operate.output import plain, span_text
from pipeline.planning.problem.capacity import is_given_up
from pipeline.planning.state import from_json

_TODO = "look at its process and its log: is it paused, hung, or waiting for something unavailable?"


def outages(group: GroupEvidence) -> Iterator[Finding]:
    """A finding for each member that stood still at the newest decision, the longest outage first."""
    decision = group.decision
    if decision is None:
        return
    as_of, rates = decision["updated_at"], from_json(decision["state"]).rates
    at_ms = round(as_of.timestamp() * 1000)
    names = names_of(facts_of(group)).values()
    still = [
        (rate.still_since_ms, name) for name in names if (rate := rates.get(name)) and rate.still_since_ms
    ]
    for since_ms, name in sorted(still):
        is_over = is_given_up(rates[name], now_ms=at_ms)
        what_plans_do = (
            "plans give what it holds to others until it reads again"
            if is_over
            else "plans neither give it partitions nor take any for two minutes"
        )
        figures = Figures(question="behind", source="plan_state", as_of=as_of, object=plain(name))
        yield figures.finding(
            "problem" if is_over else "note",
            f"{plain(name)} has read nothing for {span_text((at_ms - since_ms) / 1000)} or longer although there is "
            f"something to read: {what_plans_do}",
            _TODO,
        )
