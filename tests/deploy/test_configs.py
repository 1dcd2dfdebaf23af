"""Every configuration that is shipped or rendered is one that lagwise takes, without a warning."""

import re
import sys
from pathlib import Path

import pytest

from pipeline.config.load import load
from tests.deploy.chart import EXAMPLES, LEAST, ROOT, config_of, manifests, parsed, rendered
from tests.deploy.tools import said

SHIPPED = sorted(
    [
        *(ROOT / "conf" / "examples").glob("*.toml"),
        *(file for file in (ROOT / "deploy").glob("*/*.toml") if file.name != "pyproject.toml"),
    ],
)
_LAGWISE = [sys.executable, "-c", "from pipeline.operate.cli.app import main; main()"]


def check(file: Path, *, refused: bool = False) -> str:
    return said([*_LAGWISE, "config", "check", file], refused=refused)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.relative_to(ROOT)))
def test_shipped_configuration_is_sound(file: Path) -> None:
    assert "warning" not in check(file)


def test_examples_are_those_that_the_page_names() -> None:
    page = (ROOT / "deploy" / "docs" / "deploying.md").read_text(encoding="utf-8")
    names = {file.name for file in SHIPPED if file.parent.name == "examples"}

    assert set(re.findall(r"^\| `([\w-]+\.toml)` \|", page, re.MULTILINE)) == names


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_rendered_configuration_is_sound(example: Path, tmp_path: Path) -> None:
    file = tmp_path / "lagwise.toml"
    file.write_text(config_of(parsed(rendered(example))), encoding="utf-8")

    assert "warning" not in check(file)


def test_rendered_configuration_with_a_wrong_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lagwise.toml"
    config = LEAST["config"] | {"trigger": {"intervall_s": 60}}
    file.write_text(config_of(manifests({"config": config})), encoding="utf-8")

    assert "trigger.intervall_s: unknown key" in check(file, refused=True)


def test_every_form_of_a_value_comes_through_as_it_was_written(tmp_path: Path) -> None:
    hostile = 'a"b\\c\n# [x]\t{{ y }} <é>'
    values = {
        "cluster": {"name": hostile},
        "source": {"topics_exclude": ["__.*", "a\\.b"], "max_offsets_per_trigger": 2_000_000},
        "plan": {
            "dry_run": False,
            "guards": {"min_improvement": 0.25},
            "groups": [{"pattern": "a", "options": {"max_moves": 20}}, {"pattern": "b", "exclude": True}],
        },
        "history": {"interval_s": 300},
    }
    file = tmp_path / "lagwise.toml"
    file.write_text(config_of(manifests({"config": LEAST["config"] | values})), encoding="utf-8")

    config = load(file)
    assert config.cluster.name == hostile
    assert config.source.topics_exclude == ("__.*", "a\\.b")
    assert config.source.max_offsets_per_trigger == 2_000_000
    assert config.plan.guards.min_improvement == 0.25
    assert [rule.pattern for rule in config.plan.groups] == ["a", "b"]
    assert config.plan.groups[0].options == {"max_moves": 20}
    assert config.plan.groups[1].exclude is True
    assert config.history.interval_s == 300
