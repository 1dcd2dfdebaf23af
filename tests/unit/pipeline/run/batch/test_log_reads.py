"""How often a batch reads the logs of its tables: on an object store each time costs seconds if answers are slow."""

from pathlib import Path
from types import SimpleNamespace

from pipeline.config.model import Config, HistoryConfig
from pipeline.run.batch.groups import store_group_history, store_groups
from pipeline.run.batch.lag import store_history, store_lag
from pipeline.run.batch.opening import begin
from pipeline.run.batch.plans.evaluation import make_plans
from pipeline.run.batch.plans.history import record_decisions
from pipeline.run.batch.topics import store_topic_offsets
from pipeline.tables.owner import ownership
from pipeline.tables.schemas import TABLES
from pipeline.tables.store import Store
from tests.support.job.frames import NOW_MS
from tests.support.job.job import eager_plan
from tests.support.job.log_reads import log_reads
from tests.support.job.step_batches import StepBatches

CONFIG = Config(plan=eager_plan(), history=HistoryConfig(interval_s=1, max_gap_s=1))
STEPS = (
    begin,
    store_topic_offsets,
    store_group_history,
    store_groups,
    store_lag,
    store_history,
    make_plans,
    record_decisions,
)


def test_batch_opens_no_table_replays_no_log_and_looks_at_each_table_once_and_after_its_files(
    tmp_path: Path,
) -> None:
    publisher = SimpleNamespace(unavailable=lambda _: None)
    batches = StepBatches(str(tmp_path), *STEPS, config=CONFIG, publisher=publisher)
    batches.store = ownership.acquire(
        Store(str(tmp_path), term=0), cluster="local", owner="me", now_ms=NOW_MS
    )
    batches.restart()
    written = [_batch(batches, number) for number in range(2)]

    with log_reads() as reads:
        written.append(_batch(batches, 2))

    assert written[2] == {"topic_offsets", "partition_lag", "lag_history", "member_rates", "plan_state"}
    # Files of tasks are committed by a handle that does not follow by itself.
    of_files = 3
    assert reads == {"look": len(TABLES) + of_files}


def _batch(batches: StepBatches, number: int) -> set[str]:
    end = {"row_kind": "log_offset", "log_start_offset": 0, "log_end_offset": 10 + number}
    commit = {"row_kind": "commit", "committed_offset": 5 + number, "position": 1 + number}
    return batches.run(end, commit)
