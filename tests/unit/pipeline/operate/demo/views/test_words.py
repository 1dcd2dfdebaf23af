import pytest

from pipeline.operate.demo.views.words import grounds, seconds, verdict
from tests.support.operate.demo_views import plan


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "never"), (0.4, "0 s"), (119.4, "119 s"), (120.0, "2 min"), (7199.0, "120 min"), (7200.0, "2 h")],
)
def test_seconds_are_said_in_a_unit_that_fits(value: float | None, expected: str) -> None:
    assert seconds(value) == expected


def test_one_move_is_one_move() -> None:
    assert grounds(plan(moves=1)).startswith("1 move,")


def test_drain_times_are_not_known_when_nobody_was_seen_with_a_backlog() -> None:
    unknown = plan(drain_s_before=None, drain_s_after=None, drain_s_bound=None, capacity_known=False)

    assert grounds(unknown) == "2 moves, drain time unknown"


def test_group_that_no_assignment_drains_is_never_drained() -> None:
    overloaded = plan(drain_s_before=None, drain_s_after=None, drain_s_bound=None)

    assert grounds(overloaded) == "2 moves, drain never → never (best never)"


def test_a_decision_against_a_plan_has_its_reason() -> None:
    abstained = plan(decision="abstain", epoch=None, reason="no members")

    assert (verdict(abstained), grounds(abstained)) == ("abstain", "no members")
