"""Verdicts, for people and for programs."""

import json
import sys
from collections.abc import Sequence

from tests.conformance.trial import Verdict

KEPT, BROKEN, NOT_JUDGED = 0, 1, 2


def exit_status(verdicts: Sequence[Verdict]) -> int:
    """0 if every rule is kept, 1 if one is broken, 2 if the follower could not be judged."""
    outcomes = {verdict.outcome for verdict in verdicts}
    if "fail" in outcomes:
        return BROKEN
    return KEPT if outcomes == {"pass"} else NOT_JUDGED


def show(verdict: Verdict) -> None:
    """One verdict."""
    _say(f"{verdict.outcome:10}  {verdict.rule.sentence}  [{verdict.rule.number}]")
    if verdict.why:
        _say(f"            {verdict.why}")


def show_sum(verdicts: Sequence[Verdict]) -> None:
    """What came of all."""
    outcomes = [verdict.outcome for verdict in verdicts]
    kept, broken, left = (outcomes.count(one) for one in ("pass", "fail", "not judged"))
    words = [f"{kept} rules kept", f"{broken} broken", *([f"{left} not judged"] if left else [])]
    _say(", ".join(words))


def show_json(verdicts: Sequence[Verdict], command: Sequence[str]) -> None:
    """All of it as one object."""
    rules = [
        {"rule": v.rule.number, "sentence": v.rule.sentence, "outcome": v.outcome, "why": v.why}
        for v in verdicts
    ]
    _say(
        json.dumps({"command": list(command), "exit_status": exit_status(verdicts), "rules": rules}, indent=2)
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
