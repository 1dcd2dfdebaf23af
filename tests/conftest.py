"""Shared fixtures; every test gets the marker of its folder."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.formatted import formatted_once

_TESTS = Path(__file__).parent
# Brokers and drivers in tests live for a minute or a few: what the optimising compiler does in that time is not earned
# back. `lagwise --once` takes 26 s of processor time without it, and 41 s with it.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# Files that take half a minute of a processor and more: begun last, one of them would be waited for by an idle worker.
_LONGEST_FIRST = (
    "test_broker_assignor",
    "test_demo",
    "test_second_root",
    "test_spark_cluster",
    "test_memory",
    "test_restore",
    "test_second_driver",
    "test_sticky_family",
    "test_once",
    "test_replay",
    "test_truth",
    "test_upgrade_0_1_0",
    "test_embedded_cluster",
    "test_store",
    "test_embedded",
    "test_follow_loop",
    "test_broker_failures",
    "test_own_topics",
)
# A shell lets what it starts in the background ignore Ctrl-C, and the commands under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
_MARKERS = {"spark": "spark", "integration": "broker", "fault": "fault"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marker = _MARKERS.get(item.path.relative_to(_TESTS).parts[0])
        if marker:
            item.add_marker(marker)
    turns = {name: turn for turn, name in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: turns.get(item.path.stem, len(turns)))


@pytest.fixture(scope="session", autouse=True)
def _formatted_once() -> Iterator[None]:
    with formatted_once():
        yield


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """One running broker for all tests that do not hurt it; give topics and groups names of your own."""
    with _broker() as running:
        yield running


@pytest.fixture(scope="session")
def forged_broker() -> Iterator[EmbeddedBroker]:
    """A broker for all tests that put records of their own, and sound ones, into its offsets topic.

    A coordinator that finds such records where its next write should go reads its partition again, and turns away all
    groups of it meanwhile; after a record that it cannot read, for ever.
    """
    with _broker() as running:
        yield running


@contextmanager
def _broker() -> Iterator[EmbeddedBroker]:
    with small_broker() as running:
        create_offsets_topic(running.bootstrap_servers)
        yield running
