"""A transaction on the offsets topic that begins to hang when the job has read everything long ago."""

from pathlib import Path

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_topics
from tests.support.brokers.inject import inject, offsets_partition, open_transaction
from tests.support.groups.group_records import lopsided_group
from tests.support.job.job import eager_plan, job_config, running

LATER = "held-later"


def test_transaction_that_begins_to_hang_later_stops_the_plans_of_its_partition(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    bootstrap = forged_broker.bootstrap_servers
    create_topics(bootstrap, {LATER: 3})
    inject(bootstrap, lopsided_group(LATER, LATER))
    config = job_config(bootstrap, tmp_path, plan=eager_plan(max_staleness_s=5))
    with running(config) as job:
        job.wait(lambda: job.reports[-1].is_complete, what="the offsets topic read to its end")
        with open_transaction(bootstrap, LATER, {(LATER, 2): 7}):
            job.wait(lambda: job.reports[-1].stamp.reason, what="a partition that is held back")
            job.wait_for_batches()
            held = job.last_decision(LATER)
        job.wait(lambda: job.reports[-1].is_complete, what="the partition read on")

    assert held["decision"] == "abstain"
    assert held["reason"].startswith("provisional")
    assert f"{offsets_partition(LATER)} (" in held["reason"]
    assert "an open transaction holds back" in held["reason"]
