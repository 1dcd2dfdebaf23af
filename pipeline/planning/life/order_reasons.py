"""Reasons of decisions that answer operators' orders, in the form that `reasons` describes."""

from pipeline import shell


def awaiting_approval(since: str, group_id: str) -> str:
    """The plan is made, and an operator has to publish it."""
    return f"the plan waits for approval since {since}; {shell.command('approve', group_id)} shows and publishes it"


def approved(by: str, why: str) -> str:
    """An operator has approved the plan."""
    return f"approved by {by}" + (f": {why}" if why else "")


def approval_refused(by: str, cause: str) -> str:
    """An approval publishes nothing, for this cause; what is decided instead follows."""
    return f"approval refused: {cause} (approved by {by})"


def published_already(epoch: int) -> str:
    """Another operator was first."""
    return f"plan epoch {epoch} has published it already"


def other_plan_waits(approved_hash: str, waiting_hash: str) -> str:
    """The operator has looked at an earlier plan."""
    return f"plan {approved_hash} does not wait any more, but plan {waiting_hash} does"


def trigger_ignored(at: str) -> str:
    """No plan could be made in its time, or one of two clocks is wrong."""
    return f"trigger of {at} ignored: more than ten minutes from now by this host's clock; trigger again"
