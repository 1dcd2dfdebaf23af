"""A case explained, without the command around it."""

import pytest

from assignor.cases.explanation import explain
from assignor.evaluation.drain import bound as drain_bound
from assignor.evaluation.drain.work import Work
from assignor.strategies.registry import strategy


def test_bound_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than all the rest."""
    asked = []
    find = drain_bound.lower_bound

    def counted(work: Work) -> drain_bound.LowerBound:
        asked.append(work)
        return find(work)

    monkeypatch.setattr(drain_bound, "lower_bound", counted)
    case = {"topics": {"t": 1}, "members": {"a": {"topics": ["t"], "capacity": 10}}, "lags": {"t": [900]}}

    explained = explain(case, strategy("range"))

    assert explained["drain_s_bound"] == 90
    assert len(asked) == 1
