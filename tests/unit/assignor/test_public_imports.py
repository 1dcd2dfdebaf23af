"""What consumers import, by the names that the documents show; everything else may move."""

import subprocess
import sys
from importlib import import_module

import pytest

_PUBLIC = {
    "assignor": ("Group", "Member", "STRATEGIES", "build_group", "by_member", "strategy"),
    "assignor.clients.aiokafka": ("Following", "MemberAssignor", "StrategyAssignor"),
    "assignor.clients.confluent": (
        "Follower",
        "FollowerConfigError",
        "NotOwnedError",
        "TransactionsUnsupportedError",
    ),
    "assignor.clients.kafka_python": (
        "COOPERATIVE",
        "EAGER",
        "Following",
        "MemberAssignor",
        "StrategyAssignor",
    ),
    "assignor.protocol.control": ("ControlRecord", "decode"),
}
_WITHOUT_CLIENT = ("assignor", "assignor.cases.run", "assignor.clients.control", "assignor.protocol.control")
_HEAVY = ("pyarrow", "pyspark", "pydantic", "confluent_kafka", "kafka", "aiokafka", "pandas")


@pytest.mark.parametrize("module", _PUBLIC)
def test_public_names_are_there_and_listed(module: str) -> None:
    found = import_module(module)

    assert [name for name in _PUBLIC[module] if not hasattr(found, name)] == []
    assert set(_PUBLIC[module]) <= set(getattr(found, "__all__", _PUBLIC[module]))


@pytest.mark.parametrize("module", _WITHOUT_CLIENT)
def test_consumer_without_a_client_needs_numpy_alone(module: str) -> None:
    # A module that is None cannot be imported.
    code = f"import sys; sys.modules.update(dict.fromkeys({_HEAVY})); import {module}"

    subprocess.run([sys.executable, "-c", code], check=True)


_WITHOUT_NUMPY = {
    "assignor": "assignor.errors",
    "assignor.protocol.control": "assignor.protocol.control.decode",
    "assignor.clients.confluent": """assignor.clients.confluent.Follower(
        {"group.id": "g", "enable.auto.commit": False, "bootstrap.servers": "127.0.0.1:1", "log_level": 0}, ["t"]
    ).poll(0.1)""",
}


@pytest.mark.parametrize("module", _WITHOUT_NUMPY)
def test_consumer_that_computes_nothing_needs_no_numpy(module: str) -> None:
    code = (
        f"import sys; sys.modules['numpy'] = None; import {module}, assignor.errors; {_WITHOUT_NUMPY[module]}"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_of_the_package_are_all_found_and_no_others() -> None:
    assignor = import_module("assignor")

    assert {name: getattr(assignor, name).__name__ for name in ("Group", "by_member", "strategy")} == {
        "Group": "Group",
        "by_member": "by_member",
        "strategy": "strategy",
    }
    assert [name for name in assignor.__all__ if not hasattr(assignor, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'groups'"):
        _ = assignor.groups
