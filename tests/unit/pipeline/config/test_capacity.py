"""What a configuration takes: the measured figures where there are some, and no warning of what fits."""

from typing import Any

import pytest

from pipeline.config.capacity import MEASURED, Cluster, capacity, warnings
from pipeline.config.model import Config

LARGE = Cluster(partitions=300_000, logs=100_000, commits_per_s=60_000)


def warned(cluster: Cluster, **tables: Any) -> list[str]:
    """Keys that are warned of."""
    return [line.partition(": ")[0] for line in warnings(Config.model_validate(tables), cluster)]


@pytest.mark.parametrize("size", MEASURED, ids=lambda size: str(size.rows))
def test_measured_sizes_take_what_was_measured(size: Any) -> None:
    takes = capacity(Config(), Cluster(partitions=size.rows, logs=1))

    assert (takes.batch_s, takes.memory_gb) == (pytest.approx(size.batch_s), pytest.approx(size.memory_gb))


def test_sizes_between_cost_something_between_and_larger_ones_more() -> None:
    costs = [
        capacity(Config(), Cluster(partitions=rows, logs=1)).batch_s for rows in (1, 10**4, 10**5, 3 * 10**5)
    ]
    larger = [capacity(Config(), Cluster(partitions=rows, logs=1)).batch_s for rows in (10**6, 10**7)]

    assert costs == sorted(costs)
    assert costs[0] == costs[1]
    assert MEASURED[1].batch_s < costs[3] < MEASURED[2].batch_s < larger[1]
    assert larger[1] / larger[0] == pytest.approx(MEASURED[2].batch_s / MEASURED[1].batch_s)


def test_defaults_hold_a_large_cluster() -> None:
    assert warned(LARGE) == []


@pytest.mark.parametrize(
    ("cluster", "tables", "key"),
    [
        (LARGE, {"source": {"max_offsets_per_trigger": 50_000}}, "source.max_offsets_per_trigger"),
        (LARGE, {"trigger": {"interval_s": 3}}, "trigger.interval_s"),
        (LARGE, {"source": {"request_timeout_s": 5}}, "source.request_timeout_s"),
        (LARGE, {"spark": {"spark.driver.memory": "1000m"}}, 'spark."spark.driver.memory"'),
        (Cluster(partitions=10**6 + 1, logs=1), {}, 'spark."spark.driver.memory"'),
        (Cluster(partitions=10, logs=200_000), {}, "source.request_timeout_s"),
    ],
)
def test_what_does_not_fit_is_named_by_its_key(cluster: Cluster, tables: dict[str, Any], key: str) -> None:
    assert warned(cluster, **tables) == [key]


@pytest.mark.parametrize("size", ["2G", "2048m", "4gb", "as much as there is"])
def test_memory_is_read_as_java_writes_it(size: str) -> None:
    assert warned(LARGE, spark={"spark.driver.memory": size}) == []


def test_disk_goes_with_retention_and_pace() -> None:
    base = capacity(Config(), LARGE)
    longer = capacity(Config.model_validate({"tables": {"retention_hours": 5.0}}), LARGE)
    denser = capacity(Config.model_validate({"history": {"max_gap_s": 60}}), LARGE)

    assert longer.latest_gb == pytest.approx(base.latest_gb * (600 + 60) / (240 + 60))
    assert base.history_gb_a_day < 5
    assert 2 < denser.history_gb_a_day / base.history_gb_a_day < 5
