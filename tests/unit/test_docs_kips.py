"""The page that holds a proposal against the code names modules and tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "deploy/docs/kips.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]
MODULE = re.compile(r"`((?:assignor|pipeline)/[\w/]+\.py)`")
TEST = re.compile(r"`(tests/[\w/]+\.py):(\w+)`")


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_sentence_names_a_module_and_a_test_that_are_there(row: list[str]) -> None:
    _, modules, tests = row

    named = TEST.findall(tests)

    assert MODULE.findall(modules)
    assert named
    assert all((ROOT / path).is_file() for path in MODULE.findall(modules))
    assert [name for path, name in named if name not in functions(ROOT / path)] == []


@pytest.mark.parametrize(
    ("kip", "steps"),
    [
        ("169", ["(1a)", "(1b)", "(2a, i, ii)", "(iii)"]),
        (
            "315",
            [
                "(1, 1.1)",
                "(2.1)",
                "(2.2.1)",
                "(2.2.2)",
                "(3)",
                "(4.1, 4.1.1, 4.1.2)",
                "(4.1.3)",
                "(5)",
                "(6)",
                "(7)",
            ],
        ),
        ("341", ["version 0:", "version 1:", "falls back to version 0", "a leader of version 0"]),
        ("615", ["(first pass)", "(second pass)", "(third pass)", "(fourth pass)"]),
        ("726", ["default list", "selected", "onPartitionsLost", "disable committing", "back and forth"]),
    ],
)
def test_page_has_a_row_for_every_step_and_says_what_differs(kip: str, steps: list[str]) -> None:
    (section,) = [text for text in PAGE.split("\n## ") if text.startswith(f"KIP-{kip}:")]
    table, _, differences = section.partition("\nDifferences:\n")

    assert [step for step in steps if step not in table] == []
    assert differences.strip()
