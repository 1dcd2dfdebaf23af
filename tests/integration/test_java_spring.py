"""A Spring Boot application whose listeners follow, by the property alone or with the bean of the docs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assignor.protocol.acks import Applied
from pipeline.local.jars import resolve
from pipeline.local.java import find_java
from tests.support.brokers.broker import admin_client
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup, all_to_one
from tests.support.java.java_apps import SOURCES, JavaApp, Owned, compiled, owned, settled
from tests.support.java.java_jar import VERSIONS, java_jar
from tests.support.waiting import wait_until

BOOT, SPRING_KAFKA, CLIENTS = "3.5.0", "3.3.6", VERSIONS[0]
"""kafka-clients of the release that Spring Boot manages."""


@pytest.fixture(scope="module")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("spring")
    jars = [
        java_jar().file,
        *resolve(
            (
                f"org.springframework.boot:spring-boot-starter:{BOOT}",
                f"org.springframework.kafka:spring-kafka:{SPRING_KAFKA}",
                f"org.apache.kafka:kafka-clients:{CLIENTS}",
            )
        ),
    ]
    compiled(
        SOURCES / "lagwise/spring/Application.java", folder, jars, find_java().resolve().with_name("javac")
    )
    return os.pathsep.join(map(str, (folder, *jars)))


@contextmanager
def application(class_path: str, setup: PluginSetup, folder: Path, *more: str) -> Iterator[JavaApp]:
    """With three listeners, so three members of one group."""
    properties = (
        "spring.kafka.consumer.properties[partition.assignment.strategy]=lagwise.follow.LagwiseAssignor",
        f"spring.kafka.bootstrap-servers={setup.bootstrap}",
        f"spring.kafka.consumer.group-id={setup.name}",
        "spring.kafka.consumer.auto-offset-reset=earliest",
        f"spring.kafka.consumer.properties[lagwise.control.topic]={setup.control}",
        f"spring.kafka.consumer.properties[lagwise.acks.topic]={setup.acks}",
        "spring.kafka.consumer.properties[heartbeat.interval.ms]=300",
        "spring.kafka.listener.concurrency=3",
        f"topic={setup.name}",
        *more,
    )
    file = folder / "application.properties"
    file.write_text("\n".join(properties), encoding="utf-8")
    location = f"--spring.config.location=file:{file}"
    with JavaApp(
        [str(find_java()), "-Xmx256m", "-cp", class_path, "lagwise.spring.Application", location]
    ) as app:
        yield app


def test_listeners_with_the_bean_apply_a_plan_when_it_is_published(
    class_path: str, setup: PluginSetup, tmp_path: Path
) -> None:
    with application(class_path, setup, tmp_path, "following=true") as app:
        generation, base = settled(app, setup.bootstrap, setup.name, setup.places, members=3)
        target = publish(setup, generation, base)

        wait_until(lambda: owned(setup.bootstrap, setup.name) == target, what="the target")
        wait_until(lambda: {ack.member for ack in setup.said(Applied)} == set(base), what="acknowledgements")
        assert_each_read_once(app)


def test_listeners_with_the_property_alone_apply_a_plan_in_the_next_rebalance(
    class_path: str, setup: PluginSetup, tmp_path: Path
) -> None:
    with application(class_path, setup, tmp_path) as app:
        generation, base = settled(app, setup.bootstrap, setup.name, setup.places, members=3)
        target = publish(setup, generation, base)
        # The leader may read the plan only after the first.
        for _ in range(3):
            app.press()
            generation, now = settled(
                app, setup.bootstrap, setup.name, setup.places, members=3, after=generation
            )
            if now == target:
                break

        assert now == target
        assert_each_read_once(app)


def publish(setup: PluginSetup, generation: int, base: Owned) -> Owned:
    """Publish a plan that no even strategy gives; its target."""
    cluster = admin_client(setup.bootstrap).list_topics(timeout=10).cluster_id
    target = all_to_one(base)
    setup.publish(setup.plan(base, target, generation=generation, cluster=cluster))
    return target


def assert_each_read_once(app: JavaApp) -> None:
    """The listeners commit what they have read before they give a partition up."""
    records = sorted(f"read {p}:{o}" for p in range(PARTITIONS) for o in range(RECORDS))
    wait_until(lambda: set(records) <= set(app.said), what="every record read")
    assert sorted(line for line in app.said if line.startswith("read ")) == records
