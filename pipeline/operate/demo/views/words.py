"""Texts of figures and plans for both views."""

from pipeline.operate.demo.moves import Move
from pipeline.operate.demo.snapshot import Plan
from pipeline.operate.output import span_text


def seconds(value: float | None) -> str:
    """Seconds in two or three digits; None is "never"."""
    return "never" if value is None else span_text(value)


def verdict(plan: Plan) -> str:
    """The decision, with the epoch if there is one."""
    return plan.decision if plan.epoch is None else f"{plan.decision} epoch {plan.epoch}"


def has_target(plan: Plan) -> bool:
    """Whether the decision has moves."""
    return plan.decision in {"publish", "dry_run", "advice"}


def grounds(plan: Plan) -> str:
    """The reason, or the predicted gain of the plan."""
    if not has_target(plan):
        return plan.reason or ""
    moves = "1 move" if plan.moves == 1 else f"{plan.moves} moves"
    if plan.capacity_known is False:
        return f"{moves}, drain time unknown"
    before, after, bound = map(seconds, (plan.drain_s_before, plan.drain_s_after, plan.drain_s_bound))
    return f"{moves}, drain {before} → {after} (best {bound})"


def handed_over(move: Move) -> str:
    """A move: partition, old and new owner."""
    return f"{move.topic}-{move.partition} {move.from_client} → {move.to_client}"
