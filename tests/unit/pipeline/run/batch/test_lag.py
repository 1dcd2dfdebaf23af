"""How many rows the groups of `partition_lag` are about, by which they are dealt out, and by what they are measured."""

import pytest

from pipeline.config.model import Config, PlanConfig, TriggerConfig
from pipeline.run.batch.lag import _assigned, _settings
from tests.support.job.batches import batch_of, idle_driver
from tests.support.job.frames import arrow, member

GROUPS = arrow(
    "consumer_groups",
    {"group_id": "g", "members": [member("a", assigned={"t": [0, 1], "u": []}), member("b", assigned={})]},
    {"group_id": "h", "members": None},
    {
        "group_id": "i",
        "members": [member("c", assigned=None), member("d", assigned={"x": [5] * 3, "t": None})],
    },
)


def test_claims_are_counted_by_group() -> None:
    assert _assigned(GROUPS).tolist() == [2, 0, 3]
    assert _assigned(GROUPS.slice(2)).tolist() == [3]
    assert _assigned(GROUPS.slice(3)).tolist() == []


@pytest.mark.parametrize(("interval_s", "most_gap_s"), [(1, 30), (30, 150), (60, 300)])
def test_samples_may_be_some_triggers_apart_whatever_the_trigger(interval_s: int, most_gap_s: int) -> None:
    batch = batch_of(idle_driver(config=Config(trigger=TriggerConfig(interval_s=interval_s))))

    assert _settings(batch, ()).most_gap_ms == 1000 * most_gap_s


@pytest.mark.parametrize(("is_once", "most_gap_s"), [(True, 4_500), (False, 150)])
def test_samples_of_once_may_be_some_runs_apart(is_once: bool, most_gap_s: int) -> None:
    """Runs are as far apart as `plan.interval_s` says."""
    batch = batch_of(idle_driver(config=Config(plan=PlanConfig(interval_s=900)), is_once=is_once))

    assert _settings(batch, ()).most_gap_ms == 1000 * most_gap_s
