"""Examples in docstrings are true: each `>>>` is run, and gives what stands under it."""

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGES = ("assignor", "pipeline")
MODULES = [
    ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    for package in PACKAGES
    for file in sorted(Path(package).rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


def test_some_examples_are_found() -> None:
    assert {"assignor.strategies.sticky", "pipeline.lag"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_are_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))

    assert found.attempted > 0
    assert found.failed == 0
