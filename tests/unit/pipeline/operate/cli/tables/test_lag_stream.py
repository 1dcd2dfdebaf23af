"""What `lagwise lag` says when the newest batch is old: a slow stream is told from a stopped one."""

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pipeline.tables.owner.beat_file import FILE_NAME
from pipeline.tables.owner.heartbeat import Heartbeat
from pipeline.tables.reading import Tables


@pytest.fixture(autouse=True)
def _old_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    at = datetime.now(tz=timezone.utc) - timedelta(seconds=200)
    monkeypatch.setattr(Tables, "written_at", lambda *_: at)


def said(world: Any) -> str:
    world.write("partition_lag", {"lag": 1})
    return str(world.run("lag").stderr)


def test_stream_with_long_batches_is_told_from_one_that_does_not_run(world: Any) -> None:
    Heartbeat(str(world.root), {}, every_s=60).begin("host/7/1", 1)

    assert said(world).startswith("the stream is running (driver host/7/1); its newest batch was written 20")


def test_stream_that_was_stopped_is_called_so(world: Any) -> None:
    with Heartbeat(str(world.root), {}, every_s=60) as own:
        own.begin("host/7/1", 1)

    assert said(world).endswith("s ago: the stream was stopped\n")


@pytest.mark.parametrize("content", [None, "torn", "old"])
def test_without_a_fresh_sign_of_life_it_asks(
    world: Any, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content == "torn":
        (world.root / FILE_NAME).write_text("{")
    if content == "old":
        at_ns = time.time_ns() - 61 * 10**9
        with monkeypatch.context() as then:
            then.setattr(time, "time_ns", lambda: at_ns)
            Heartbeat(str(world.root), {}, every_s=60).begin("host/7/1", 1)

    assert said(world).endswith("s ago: is the stream running?\n")
