"""Predictions for a cluster: cut as batches are cut, bounded by the largest group and by the driver."""

import pytest

from pipeline.config.cluster_times import (
    DRIVER,
    GROUP_ROWS,
    Cost,
    groups_of,
    predicted,
    rows_of_tasks,
)
from pipeline.source import partitions

ROWS = 1_000_000
JOBS = ("read", "fold topic_offsets", "fold partition_lag", "fold lag_history", "decide")
FREE = dict.fromkeys((DRIVER, *JOBS), Cost(0.0, 0.0))
COSTS = dict.fromkeys(JOBS, Cost(0.1, 4e-6)) | {DRIVER: Cost(0.2, 1e-6)}


def batch_s(rows: int = ROWS, *, cores: int, largest: int = GROUP_ROWS) -> float:
    return predicted(groups_of(rows, largest=largest), cores=cores, costs=COSTS).batch_s


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 40])
@pytest.mark.parametrize(("rows", "largest"), [(1, 1000), (1_500, 1_000), (300_000, 120_000), (ROWS, 1000)])
def test_every_row_is_read_folded_and_decided_once(rows: int, largest: int, cores: int) -> None:
    tasks = rows_of_tasks(groups_of(rows, largest=largest), cores=cores)

    assert {sum(tasks[job]) for job in ("read", "fold partition_lag", "fold lag_history", "decide")} == {rows}


def test_more_cores_shorten_the_jobs_but_not_the_driver() -> None:
    one, eight = (predicted(groups_of(ROWS), cores=cores, costs=COSTS) for cores in (1, 8))

    assert one.driver_s == eight.driver_s
    assert all(eight.job_s[job] <= one.job_s[job] for job in one.job_s)
    assert sum(eight.job_s.values()) > sum(one.job_s.values()) / 8
    assert [batch_s(cores=cores) for cores in (1, 2, 4, 8)] == sorted(
        (batch_s(cores=cores) for cores in (1, 2, 4, 8)), reverse=True
    )


def test_few_rows_gain_nothing() -> None:
    assert batch_s(1_000, cores=8) == batch_s(1_000, cores=1)


def test_large_group_bounds_what_cores_buy() -> None:
    costs = FREE | {"fold partition_lag": Cost(0.0, 1e-6)}
    times = predicted(groups_of(ROWS, largest=600_000), cores=8, costs=costs)

    assert times.batch_s == pytest.approx(0.6)


def test_tasks_wait_for_a_core_in_their_order() -> None:
    costs = FREE | {
        "fold partition_lag": Cost(1.0, 0.0),
        DRIVER: Cost(5.0, 0.0),
    }
    cut = rows_of_tasks(groups_of(ROWS), cores=1)["fold partition_lag"]

    assert cut == [250_000] * 4
    assert predicted(groups_of(ROWS), cores=1, costs=costs).batch_s == 9.0


def test_reading_is_cut_as_the_source_cuts_it() -> None:
    assert rows_of_tasks(groups_of(partitions.RECORDS_A_TASK), cores=8)["read"] == [
        partitions.RECORDS_A_TASK,
        0,
    ]
    assert len(rows_of_tasks(groups_of(partitions.RECORDS_A_TASK + 1), cores=8)["read"]) == 3


def test_one_core_has_its_jobs_cut_for_two_as_spark_says() -> None:
    tasks = rows_of_tasks(groups_of(200_000), cores=1)

    assert tasks == rows_of_tasks(groups_of(200_000), cores=2)
    assert tasks["decide"] == [100_000, 100_000]
