"""Settings of the source, as options that Spark keeps."""

import json
import subprocess
import sys
from dataclasses import replace

from pipeline.config.model import Config, ControlConfig, KafkaConfig
from pipeline.run import assembly
from pipeline.run.assembly import build_source
from pipeline.source.settings import from_options
from tests.support.job.batches import CONTROL, KnownConfigs, idle_driver

SETTINGS = build_source(
    idle_driver(
        config=Config(
            kafka=KafkaConfig(properties={"bootstrap.servers": "a:1", "sasl.password": "env:SECRET"})
        ),
        configs=KnownConfigs(**{CONTROL.acks_topic: None}),
    ).services,
    query="q",
    once=True,
    attempts=4,
)


def test_settings_are_the_same_when_they_have_been_options() -> None:
    stored = replace(SETTINGS, storage_options={"aws_secret_access_key": "file:/run/secret"})

    assert from_options(stored.to_options()) == stored


def test_tenants_topics_are_the_same_when_they_have_been_options() -> None:
    tenants = Config(control=ControlConfig(acks_topics={"shop-": "shop.acks"}))
    stored = replace(SETTINGS, filters=assembly.build_filters(tenants, "local"))

    assert from_options(stored.to_options()).filters.control_topics.acks_of("shop-a") == "shop.acks"
    assert from_options(stored.to_options()) == stored


def test_options_hold_references_to_secrets_under_the_names_that_spark_redacts() -> None:
    assert SETTINGS.to_options()["kafka.sasl.password"] == "env:SECRET"


def test_last_batches_of_a_job_that_runs_once_are_not_far_apart() -> None:
    assert SETTINGS.interval_s == 5


_READER = """
import json, sys
from pipeline.source.datasource import LagwiseSource
source = LagwiseSource(json.loads(sys.argv[1]))
source.streamReader(source.schema())
print(*(name for name in ("confluent_kafka", "deltalake", "pandas", "pydantic") if name in sys.modules))
"""


def test_processes_for_the_schema_and_for_the_reader_load_no_tables_and_no_client() -> None:
    command = [sys.executable, "-c", _READER, json.dumps(SETTINGS.to_options())]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.split() == []
