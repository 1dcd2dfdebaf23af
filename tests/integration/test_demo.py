"""The demo as a user runs it, without a terminal."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Consumer, TopicPartition

from assignor.protocol.control import decode, decode_key
from pipeline.errors import MissingDependencyError
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.java import find_java, find_tool
from pipeline.publish.claim import is_claim
from pipeline.tables.reading import Tables
from tests.support.operate.serving import get
from tests.support.waiting import wait_until

_FOLDER = Path(".lagwise/demo")
_ENDED_WITHIN_S = 120.0
_SHOWN_WITHIN_S = 60.0
_AHEAD_WITHIN_S = 120.0


def _compiled() -> list[str]:
    try:
        find_tool("javac")
    except MissingDependencyError:
        return []
    return ["refunds", "invoicing"]


_COMPILED = _compiled()
"""Groups that follow where a JDK is: through the broker, and in Java."""
_BY_BROKER = _COMPILED[:1]


class Ended(NamedTuple):
    """What a demo has left."""

    place: Path
    said: str
    processes: int
    """How many children it had, with theirs."""
    left: set[int]
    """Those of them that ran on when it had ended."""
    summary: dict[str, Any]
    shown: dict[str, Any]
    """The first answer of the page's process that was up to date and had lag."""


@contextmanager
def _demo(place: Path, *arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", "from pipeline.operate.cli.app import main; main()", "demo", *arguments],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _read_until(process: "subprocess.Popen[str]", *starts: str) -> list[str]:
    """Lines until each of `starts` has begun one."""
    assert process.stdout
    lines: list[str] = []
    left = set(starts)
    for line in process.stdout:
        lines.append(line)
        left -= {start for start in left if line.startswith(start)}
        if not left:
            return lines
    raise AssertionError(f"ended before {left}: {lines}, {process.stderr and process.stderr.read()}")


def _address(said: list[str]) -> str:
    (url,) = (line.split()[1] for line in said if line.startswith("page: "))
    return url


def _shown(said: list[str]) -> dict[str, Any]:
    """What is answered at the address that the demo has told, as soon as it is up to date and has lag."""
    url = _address(said)
    found: dict[str, Any] = {}

    def has_live_lag() -> bool:
        found.update(json.loads(get(f"{url}/api/v1/groups").text))
        return found["is_old"] is False and any(row["lag"] for row in found["groups"])

    wait_until(has_live_lag, what=f"live lag on the page: {found}", within_s=_SHOWN_WITHIN_S)
    assert get(f"{url}/").text.count("<tr>") == len(found["groups"]) + 1
    return found


def _descendants(pid: int) -> set[int]:
    """Process ids of all children of a process, and of theirs."""
    listed = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found, fresh = set[int](), {pid}
    while fresh:
        fresh = {child for child, parent in pairs if parent in fresh} - found
        found |= fresh
    return found


def _running(pids: set[int]) -> set[int]:
    """Those that still run; one that only waits for its exit status to be read does not."""
    listed = subprocess.run(["ps", "-axo", "pid=,stat="], capture_output=True, text=True, check=True)
    pairs = (line.split() for line in listed.stdout.splitlines())
    return {int(pid) for pid, state in pairs if not state.startswith("Z")} & pids


def _published(place: Path, topic: str) -> set[tuple[str, int]]:
    """Group and epoch of each plan on the control topic, as read from the broker's data that was left."""
    with EmbeddedBroker(data_dir=place / _FOLDER / "broker") as broker:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "reader",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = set()
        while (message := consumer.poll(30)) and not message.error():
            if is_claim(message.key()):
                continue
            record = decode(message.value() or b"")
            assert decode_key(message.key() or b"") == ("demo", record.group)
            found.add((record.group, record.epoch))
        consumer.close()
    return found


def _lag_by_group(lags: pa.Table) -> dict[str, int]:
    sums = lags.group_by("group_id").aggregate([("lag", "sum")]).to_pylist()
    return {row["group_id"]: row["lag_sum"] for row in sums}


def _outcomes(place: Path, group: str) -> list[dict[str, Any]]:
    """What the tables say about the plans of a group."""
    tables = Tables(str(place / _FOLDER / "tables"))
    plans = tables.read("recommendations", columns=["group_id", "plan"], where=pc.field("group_id") == group)
    return [plan for plan in plans["plan"].to_pylist() if plan]


def _has_applied(place: Path, group: str) -> bool:
    return any(
        one["status"] == "applied" and one["moves_made"] == one["moves"] > 0
        for one in _outcomes(place, group)
    )


def _is_ahead(url: str, group: str, control: str) -> bool:
    """Whether the page shows less than half of the lag of its control group."""
    shown = json.loads(get(f"{url}/api/v1/groups").text)["groups"]
    lags = {row["group_id"]: row["lag"] for row in shown if row["lag"] is not None}
    return {group, control} <= lags.keys() and 2 * lags[group] < lags[control]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A demo that was ended by Ctrl-C as soon as its first followers had taken a plan over, and it helped one."""
    place = tmp_path_factory.mktemp("demo")
    with _demo(place, "--json", "summary.json", "--keep") as demo:
        said = _read_until(demo, "batch 0")
        shown = _shown(said)
        said += _read_until(demo, *(f"{group}: moved" for group in ("billing", *_COMPILED)))
        for group in _BY_BROKER:
            wait_until(
                lambda group=group: (
                    _is_ahead(_address(said), group, f"{group}-plain") and _has_applied(place, group)
                ),
                what=f"{group} with an applied plan and less lag than its control group",
                within_s=_AHEAD_WITHIN_S,
                every_s=1.0,
            )
        processes = _descendants(demo.pid)
        demo.send_signal(signal.SIGINT)
        rest, errors = demo.communicate(timeout=_ENDED_WITHIN_S)
        left = _running(processes)
    assert (demo.returncode, errors) == (0, "")
    summary = json.loads((place / "summary.json").read_text())
    return Ended(place, "".join(said) + rest, len(processes), left, summary, shown)


def test_ctrl_c_ends_all_processes_and_prints_no_colours_into_a_pipe(ended: Ended) -> None:
    assert ended.processes > 8
    assert not ended.left
    assert "\x1b" not in ended.said


def test_page_shows_live_lag_within_a_minute_of_the_first_batch(ended: Ended) -> None:
    assert {row["group_id"] for row in ended.shown["groups"] if row["lag"]} <= {
        row["group_id"] for row in ended.summary["by_group"]
    }


def test_summary_is_what_tables_and_control_topic_hold(ended: Ended) -> None:
    summary = ended.summary
    tables = Tables(str(ended.place / _FOLDER / "tables"))
    lags = tables.read("partition_lag", columns=["group_id", "lag", "batch_id"])
    plans = tables.read("recommendations", columns=["group_id", "decision", "epoch", "reason"])
    made = plans.filter(pc.field("decision") == "publish").to_pylist()
    assert summary == {
        "batches": pc.max(lags["batch_id"]).as_py() + 1,
        "batch_seconds_p50": summary["batch_seconds_p50"],
        "groups": 7 + len(_COMPILED) + len(_BY_BROKER),
        "partitions": lags.num_rows,
        "total_lag": pc.sum(lags["lag"]).as_py(),
        "published": len(made),
        "tables_root": tables.root,
        "control_topic": "lagwise.assignments",
        "bootstrap_servers": summary["bootstrap_servers"],
        "by_group": summary["by_group"],
        "plot": str(ended.place / ".lagwise" / "lagwise-demo.html"),
    }
    ends = {one["group_id"]: one["lag_at_end"] for one in summary["by_group"]}
    # What has no commit yet is no lag, but is waiting to be read.
    assert ends.keys() == _lag_by_group(lags).keys()
    assert all(ends[name] >= lag for name, lag in _lag_by_group(lags).items())
    assert [one["group_id"] for one in summary["by_group"] if one["follows"]] == [
        "billing",
        "shipping",
        *_COMPILED,
    ]
    assert summary["batch_seconds_p50"] > 0
    published = _published(ended.place, summary["control_topic"])
    assert published == {(plan["group_id"], plan["epoch"]) for plan in made}
    assert {"billing", *_BY_BROKER} <= {group for group, _ in published}
    assert not any(group.endswith("-plain") for group, _ in published)


def test_followers_take_a_plan_over_and_the_page_shows_it(ended: Ended) -> None:
    results = {one["group_id"]: one for one in ended.summary["by_group"]}
    assert results["billing"]["moves"] >= 1
    assert results["billing-plain"]["moves"] == 0
    assert re.search(r"billing: publish epoch \d{10}\b", ended.said)
    assert re.search(r"^billing-plain +no +", ended.said, re.MULTILINE)
    assert all(results[group]["moves"] >= 1 for group in _COMPILED)
    page = ended.place / ".lagwise" / "lagwise-demo.html"
    assert f"lag over time: {page}" in ended.said
    assert "billing (follows)" in page.read_text()


@pytest.mark.skipif(not _BY_BROKER, reason="no JDK to compile the broker's assignor with")
def test_broker_applies_the_plans_of_the_kip_848_group_and_it_has_less_lag_than_its_control_group(
    ended: Ended,
) -> None:
    tables = Tables(str(ended.place / _FOLDER / "tables"))
    groups = tables.read("consumer_groups", columns=["group_id", "group_type", "assignor"]).to_pylist()
    plans = tables.read("recommendations", columns=["group_id", "decision"]).to_pylist()
    results = {one["group_id"]: one for one in ended.summary["by_group"]}

    # The records have the assignor for which members ask.
    assert {one["group_id"]: one["assignor"] for one in groups if one["group_type"] == "consumer"} == {
        "fraud": None,
        "refunds": "lagwise",
        "refunds-plain": None,
    }
    assert _has_applied(ended.place, "refunds")
    assert {plan["decision"] for plan in plans if plan["group_id"] == "refunds-plain"} >= {"dry_run"}
    assert results["refunds"]["lag_at_end"] < results["refunds-plain"]["lag_at_end"]
    assert results["refunds-plain"]["moves"] == 0


def test_time_is_up_so_long_after_the_first_batch_and_without_a_jdk_no_group_is_in_java(
    tmp_path: Path,
) -> None:
    program = tmp_path / "jre" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {find_java()} "$@"\n')
    program.chmod(0o755)
    with _demo(tmp_path, "--seconds", "1", JAVA_HOME=str(tmp_path / "jre")) as demo:
        said = _read_until(demo, "batch 0")
        rest, errors = demo.communicate(timeout=_ENDED_WITHIN_S)

    assert (demo.returncode, errors) == (0, "")
    why = f"{program} has no javac, which builds lagwise's jars: install a JDK 17, on Debian and Ubuntu with sudo apt-get install openjdk-17-jdk-headless"
    assert [line for line in said if line.startswith(("no group", "no KIP"))] == [
        f"no KIP-848 group that follows: {why}\n",
        f"no group in Java: {why}\n",
    ]
    assert not re.search("invoicing|refunds", rest)
    # How many of the groups the first batch has found depends on how far it got.
    assert re.search(r"^\d groups on \d+ partitions, ", rest, re.MULTILINE)
    assert not (tmp_path / _FOLDER).exists()


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("starting Kafka and Spark", signal.SIGTERM),
        ("running the first batch", signal.SIGINT),
    ],
    ids=["SIGTERM-while-starting", "Ctrl-C-in-first-batch"],
)
def test_a_signal_ends_it_and_leaves_nothing(line: str, number: signal.Signals, tmp_path: Path) -> None:
    with _demo(tmp_path) as demo:
        _read_until(demo, line)
        processes = _descendants(demo.pid)

        demo.send_signal(number)
        rest, errors = demo.communicate(timeout=_ENDED_WITHIN_S)

    assert (demo.returncode, errors) == (0, "")
    assert "Next:" in rest
    assert not (tmp_path / _FOLDER).exists()
    wait_until(lambda: not _running(processes), what="end of all processes")
