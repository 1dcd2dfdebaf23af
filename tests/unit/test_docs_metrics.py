"""Every metric is in the documents, and they name no other."""

import re
from pathlib import Path
from types import ModuleType

from pipeline.exposition import Family
from pipeline.operate.serve.metrics import families
from pipeline.run.health import text

_PAGE = Path(__file__).parents[2].joinpath("deploy/docs/metrics.md").read_text(encoding="utf-8")


def names(module: ModuleType) -> set[str]:
    return {one.name for one in vars(module).values() if isinstance(one, Family)}


def documented(page: str) -> set[str]:
    return set(re.findall(r"`((?:kafka|lagwise)_[a-z_]+)[`{]", page))


def section(title: str) -> str:
    return _PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_metric_is_documented_and_no_other() -> None:
    assert documented(_PAGE) == names(families) | names(text)


def test_metrics_of_the_driver_are_in_its_section() -> None:
    assert documented(section("The driver itself, by its own port")) == names(text)


def test_no_family_is_defined_twice() -> None:
    for module in (families, text):
        found = [one.name for one in vars(module).values() if isinstance(one, Family)]
        assert len(found) == len(set(found))
