"""Costs that are fitted to batches whose costs are known, and predictions held against them."""

import json
from collections.abc import Mapping

import pytest

from pipeline.config.cluster_times import DRIVER, MEASURED_COSTS, MEASURED_IN, Cost, rows_of_tasks
from tests.benchmarks import results
from tests.benchmarks.cluster_prediction import COSTS, Measured, fitted, tables
from tests.benchmarks.cluster_tasks import Job

_COSTS = {
    DRIVER: Cost(0.5, 2e-6),
    "read": Cost(0.2, 3e-6),
    "fold topic_offsets": Cost(0.1, 0.0),
    "fold partition_lag": Cost(0.3, 4e-6),
    "fold lag_history": Cost(0.1, 1e-6),
    "decide": Cost(0.2, 5e-6),
}


def batch(groups: int, costs: Mapping[str, Cost] = _COSTS) -> Measured:
    """A batch of one core whose tasks and whose driver take what these costs say."""
    sizes = {f"{number}": 1000 for number in range(groups)}
    jobs, now_ms = list[Job](), 0
    for name, tasks in rows_of_tasks(sizes, cores=1).items():
        took_ms = sum(round(costs[name].of(rows) * 1000) for rows in tasks)
        title = f"decide {groups} groups" if name == "decide" else name
        job = Job(7, title, now_ms, run_ms=[0] * len(tasks), tasks_begun_ms=now_ms)
        now_ms += took_ms
        job.tasks_ended_ms = job.ended_ms = now_ms
        jobs.append(job)
    seconds = costs[DRIVER].of(1000 * groups) + now_ms / 1000
    used = lambda begun_ms, ended_ms: (ended_ms - begun_ms) / 1000  # noqa: E731
    return Measured(groups, 1000, 1, "1 executor of 1", {7: seconds}, jobs, used)


def test_known_costs_are_found() -> None:
    costs = fitted([batch(10), batch(200), batch(1000)])

    for name, known in _COSTS.items():
        assert costs[name].fixed_s == pytest.approx(known.fixed_s, rel=0.02), name
        assert costs[name].row_s == pytest.approx(known.row_s, rel=0.02), name


def test_costs_that_predictions_rest_on_are_those_of_a_run() -> None:
    run = json.loads((results.FOLDER / f"{MEASURED_IN}.json").read_text(encoding="utf-8"))
    (found,) = (one for one in run["parts"]["cluster"]["tables"] if one["header"] == COSTS)

    assert {
        job: Cost(fixed_s, pytest.approx(row_us * 1e-6)) for job, fixed_s, row_us in found["rows"]
    } == MEASURED_COSTS


def test_costs_are_never_below_zero() -> None:
    costs = fitted([batch(10), batch(200, _COSTS | {"decide": Cost(0.05, 1e-7)})])

    assert min(min(cost.fixed_s, cost.row_s) for cost in costs.values()) >= 0


def test_predictions_stand_beside_what_was_measured() -> None:
    _, compared = tables([batch(10), batch(200), batch(1000)])

    assert {row[-1] for row in compared["rows"]} <= {"+0%", "-0%", "+1%", "-1%"}
    assert [row[2] for row in compared["rows"]].count("batch") == 3
    assert all(row[3] == row[4] for row in compared["rows"])


def test_one_size_predicts_nothing() -> None:
    assert [*tables([batch(10)])] == []
