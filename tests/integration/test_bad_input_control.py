"""A control topic that takes smaller records than the configuration allows."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from pipeline.config.model import ControlConfig
from pipeline.errors import PublishError
from pipeline.kafka import cluster
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import admin_client, create_topics, produce
from tests.support.brokers.inject import inject
from tests.support.groups.group_records import lopsided_group
from tests.support.job.job import RunningJob, eager_plan, job_config

_LIMIT = "max.message.bytes"
_AROUND = 4096


def test_smaller_limit_of_the_topic_holds(forged_broker: EmbeddedBroker) -> None:
    admin = admin_client(forged_broker.bootstrap_servers)
    limited = NewTopic("control.limited", 1, 1, config={_LIMIT: str(_AROUND + 500)})
    admin.create_topics([limited])["control.limited"].result()

    found = cluster.inspect(
        admin, ControlConfig(topic="control.limited", max_record_bytes=1000), timeout_s=30
    )

    assert found.configs.max_record_bytes == 500


@pytest.mark.parametrize("wanted", [1000, 5_000_000])
def test_topic_made_here_takes_what_the_configuration_allows(
    forged_broker: EmbeddedBroker, wanted: int
) -> None:
    control = ControlConfig(topic=f"control.made-{wanted}", max_record_bytes=wanted)

    found = cluster.inspect(admin_client(forged_broker.bootstrap_servers), control, timeout_s=30)

    assert found.configs.max_record_bytes == wanted


def test_limit_lowered_while_the_job_runs_ends_it_with_what_to_change(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    topic = "control.lowered"
    create_topics(forged_broker.bootstrap_servers, {"lowered": 3})
    produce(forged_broker.bootstrap_servers, "lowered", dict.fromkeys(range(3), 20))
    config = job_config(
        forged_broker.bootstrap_servers,
        tmp_path,
        control=ControlConfig(topic=topic),
        plan=eager_plan(dry_run=False),
    )
    job = RunningJob(config)
    job.start()
    try:
        job.wait_for_batches()
        _lower(forged_broker.bootstrap_servers, topic)
        inject(forged_broker.bootstrap_servers, lopsided_group("plan-too-large", "lowered"))
        job.join()
    finally:
        job.stop()

    assert isinstance(job.failure, PublishError)
    assert f"control topic {topic} rejects a record of" in str(job.failure)
    assert _LIMIT in str(job.failure)


def _lower(bootstrap: str, topic: str) -> None:
    entry = ConfigEntry(_LIMIT, "200", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = admin_client(bootstrap)
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result()
