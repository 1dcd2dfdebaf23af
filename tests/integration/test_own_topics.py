"""Topics of the job that somebody deletes while it runs: they are made again, and plans and lags go on."""

from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from pipeline.config.model import ControlConfig
from tests.support.brokers.broker import admin_client, create_topics, produce, small_broker
from tests.support.brokers.inject import commit_record, inject
from tests.support.groups.group_records import lopsided_group
from tests.support.job.job import RunningJob, eager_plan, job_config, running

TOPIC, GROUP = "orders", "g"
CONTROL = ControlConfig()
# A broker as Kafka ships it would make them again by itself, if it were asked for them, and not compacted.
AS_SHIPPED = {"auto_create_topics_enable": "true"}


def test_deleted_topics_of_the_job_are_made_again_and_it_goes_on(tmp_path: Path) -> None:
    with small_broker(**AS_SHIPPED) as broker:
        bootstrap = broker.bootstrap_servers
        admin = admin_client(bootstrap)
        create_topics(bootstrap, {TOPIC: 3})
        produce(bootstrap, TOPIC, dict.fromkeys(range(3), 20))
        inject(bootstrap, lopsided_group(GROUP, TOPIC))
        # Plans are renewed soon, so that the control topic is written soon.
        plan = eager_plan(dry_run=False, valid_for_s=20)
        with running(job_config(bootstrap, tmp_path / "tables", plan=plan)) as job:
            job.wait(lambda: _plans(bootstrap), what="a plan")

            for number, topic in enumerate((CONTROL.acks_topic, CONTROL.commands_topic, CONTROL.topic)):
                admin.delete_topics([topic])[topic].result()
                job.wait(lambda topic=topic: _is_compacted(admin, topic), what=f"{topic}, made again")
                inject(bootstrap, [commit_record(GROUP, TOPIC, 0, 10 + number)])
                job.wait(lambda lag=10 - number: _lag(job) == lag, what=f"a lag after {topic} was deleted")
            job.wait(lambda: _plans(bootstrap), what="a plan in the new control topic")

            job.wait_for_batches()
            assert job.reports[-1].is_complete


def _lag(job: RunningJob) -> int | None:
    lag: int | None = job.lags(GROUP)[TOPIC, 0]["lag"]
    return lag


def _is_compacted(admin: AdminClient, topic: str) -> bool:
    if topic not in admin.list_topics(timeout=10).topics:
        return False
    (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return "compact" in str(future.result()["cleanup.policy"].value)


def _plans(bootstrap: str) -> int:
    """Records in the control topic."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0})
    try:
        listed = reader.list_topics(CONTROL.topic, timeout=10).topics[CONTROL.topic].partitions
        places = [TopicPartition(CONTROL.topic, number) for number in listed]
        return sum(reader.get_watermark_offsets(place, timeout=10)[1] for place in places)
    finally:
        reader.close()
