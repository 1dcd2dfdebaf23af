"""Findings of the doctor in a form that a test can compare."""

from collections.abc import Iterable

from pipeline.operate.doctor.finding import Finding, Question
from tests.support.operate.message_form import faults


def told(findings: Iterable[Finding], question: Question) -> list[tuple[str, str]]:
    """Level and cause of the findings about a question that are not fine; each is checked to have a message's form."""
    found = [one for one in findings if one.question == question and one.level != "ok"]
    for one in found:
        assert faults(one.cause) == [], one
        assert one.todo is None or faults(one.todo) == [], one
        assert one.level in {"note", "unknown"} or one.object, one
    return [(one.level, one.cause) for one in found]
