"""The demo's Kafka has lagwise's assignor only where its jar is."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.operate.demo import broker
from pipeline.operate.demo.scenario import CLUSTER


def _given(monkeypatch: pytest.MonkeyPatch, assignor: Path | None) -> dict[str, Any]:
    """What the broker is made with."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(broker, "EmbeddedBroker", lambda **options: given.update(options))
    broker.demo_broker(Path("data"), assignor=assignor)
    return given


def test_broker_with_the_jar_reads_plans_of_the_demo_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    given = _given(monkeypatch, Path("assignor.jar"))

    assert given["class_path"] == (Path("assignor.jar"),)
    assert given["own_address"] == ("lagwise.bootstrap.servers",)
    assert given["properties"]["lagwise.cluster"] == CLUSTER
    assignors = given["properties"]["group.consumer.assignors"].split(",")
    assert assignors == ["uniform", "range", "lagwise.broker.PlanAssignor"]


def test_broker_without_the_jar_names_no_class_of_it_and_is_otherwise_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without, given = _given(monkeypatch, None), _given(monkeypatch, Path("assignor.jar"))

    assert without.keys() == {"data_dir", "properties"}
    assert without["properties"].items() < given["properties"].items()
    assert not [name for name in without["properties"] if "lagwise" in name or "assignors" in name]
