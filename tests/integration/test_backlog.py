"""A backlog that is more than a batch may read is read by batches that follow at once, whatever the interval."""

from pathlib import Path

from pipeline.config.model import SourceConfig, TriggerConfig
from tests.support.brokers.broker import create_offsets_topic, create_topics, small_broker
from tests.support.brokers.inject import inject, many_commits
from tests.support.job.job import job_config, running

_AN_HOUR_S = 3600
_MOST = 100


def test_backlog_is_read_to_its_end_long_before_the_next_batch_would_be_due(tmp_path: Path) -> None:
    with small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        create_topics(bootstrap, {"topic-0": 40})
        written = inject(bootstrap, many_commits(groups=4, topics=1, partitions=40, rounds=3))
        config = job_config(
            bootstrap,
            tmp_path / "tables",
            trigger=TriggerConfig(interval_s=_AN_HOUR_S),
            source=SourceConfig(request_timeout_s=5, max_offsets_per_trigger=_MOST),
        )

        with running(config, rests=False) as job:
            job.wait(lambda: job.reports and job.reports[-1].is_complete, what="the end of the backlog")
            left = [report.records_left for report in job.reports]
            messages = [line for line in job.messages if "records_left=" in line]

    assert written > 4 * _MOST
    assert len(left) >= written / (_MOST + 50)
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert "read_in_about_s=" in messages[0]
    assert len(messages) == len(left) - 1
